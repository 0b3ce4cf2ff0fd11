"""Makes `open_responses.schema.json`: the Responses and events of Open Responses, as JSON Schema.

    pip install openresponses-types==2.4.0
    python tests/support/open_responses_schema.py > tests/support/open_responses.schema.json

The package (mozilla.ai, Apache-2.0) is generated from the specification's own OpenAPI document
(openresponses/openresponses, Apache-2.0), here of 2026-04-24. Texts are left out.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from inspect import isclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

TEXTS = frozenset({"description", "title", "default"})
# Their values are names, not keywords of JSON Schema.
NAMED = frozenset({"properties", "$defs"})


def _without_texts(schema: Any) -> Any:
    match schema:
        case dict():
            return {
                key: {name: _without_texts(inner) for name, inner in value.items()}
                if key in NAMED
                else _without_texts(value)
                for key, value in schema.items()
                if key not in TEXTS
            }
        case list():
            return [_without_texts(inner) for inner in schema]
        case _:
            return schema


def _event_type(definitions: dict[str, Any], name: str) -> str:
    reference: str = definitions[name]["properties"]["type"]["$ref"]
    only: list[str] = definitions[reference.removeprefix("#/$defs/")]["enum"]
    return only[0]


def make_schema() -> dict[str, Any]:
    package = import_module("openresponses_types")
    models = [
        model
        for name, model in vars(package.types).items()
        if isclass(model) and issubclass(model, BaseModel) and name.endswith("StreamingEvent")
    ]
    _, schema = models_json_schema([(model, "validation") for model in (*models, package.ResponseResource)])
    definitions = _without_texts(schema)["$defs"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": (
            f"Open Responses {package.__spec_version__} (openresponses/openresponses, Apache-2.0), "
            f"from openresponses-types {package.__version__} (PyPI, Apache-2.0); "
            f"sha256 of its OpenAPI document: {package.__spec_hash__}. "
            "Made by tests/support/open_responses_schema.py: texts removed, nothing else changed."
        ),
        "events": {_event_type(definitions, model.__name__): model.__name__ for model in models},
        "$defs": definitions,
    }


if __name__ == "__main__":
    json.dump(make_schema(), sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
