"""The drafts of JSON Schema: for each its vocabulary, with our keywords in it, and its metaschema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin

import orjson
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema_specifications import REGISTRY
from msgspec import Struct
from referencing.jsonschema import EMPTY_REGISTRY, SchemaRegistry, SchemaResource, specification_with

from .check_budget import CheckBudget
from .keywords import KEYWORDS
from .validator import CountingValidator, Json, RunningCheck, Vocabulary


class Document(Struct, frozen=True):
    """A schema whose references lead within it or nowhere. Its name is its own `$id`, or empty."""

    vocabulary: Vocabulary
    resource: SchemaResource
    registry: SchemaRegistry
    name: str

    def errors(self, value: Json, budget: CheckBudget) -> Iterator[ValidationError]:
        """One after the other. Raises `SchemaUnusable` and what the library trips over."""
        check = RunningCheck(self.vocabulary, budget)
        return CountingValidator(check, self.resource.contents, self.registry.resolver(self.name)).iter_errors(value)


class Dialect:
    def __init__(self, library: type[Validator], *, references_stand_alone: bool = False) -> None:
        self.identifier = "$id" if "$id" in library.META_SCHEMA else "id"
        self.uri: str = library.META_SCHEMA[self.identifier].rstrip("#")
        self._vocabulary = Vocabulary(
            {name: KEYWORDS.get(name, keyword) for name, keyword in library.VALIDATORS.items() if name != "format"},
            library.TYPE_CHECKER,
            specification_with(self.uri),
            references_stand_alone,
        )
        self.metaschema = self.document(_in_one_piece(library.META_SCHEMA))

    def document(self, root: Json, *, crawled: bool = False) -> Document:
        """May raise anything when `root` does not fit the metaschema.

        `crawled` spares each reference to an identifier to go through all of it.
        """
        resource: SchemaResource = self._vocabulary.specification.create_resource(root)
        name = resource.id() or ""
        registry = EMPTY_REGISTRY.with_resource(name, resource)
        return Document(self._vocabulary, resource, registry.crawl() if crawled else registry, name)


def _in_one_piece(metaschema: Mapping[str, Json]) -> Json:
    """Since 2019-09 it is spread over vocabularies, each of which would go through all of a schema by itself."""
    if "allOf" not in metaschema:
        return metaschema
    parts = [metaschema, *(REGISTRY.contents(urljoin(metaschema["$id"], part["$ref"])) for part in metaschema["allOf"])]
    whole = {"type": metaschema["type"]}
    for keyword in ("properties", "$defs"):
        whole[keyword] = {name: each for part in parts for name, each in part.get(keyword, {}).items()}
    text = re.sub(rb'"\$(dynamicRef":"#meta|recursiveRef":"#)"', b'"$ref":"#"', orjson.dumps(whole))
    return orjson.loads(re.sub(rb"meta/\w+#", b"#", text))


_LATEST = Dialect(Draft202012Validator)
_OLDEST = (Dialect(each, references_stand_alone=True) for each in (Draft4Validator, Draft6Validator, Draft7Validator))
_DIALECTS: Mapping[str, Dialect] = {each.uri: each for each in (_LATEST, Dialect(Draft201909Validator), *_OLDEST)}


def dialect_of(root: Json) -> Dialect:
    """The one that `$schema` names, or the latest."""
    uri = root.get("$schema") if isinstance(root, dict) else None
    return _DIALECTS.get(uri.rstrip("#"), _LATEST) if isinstance(uri, str) else _LATEST
