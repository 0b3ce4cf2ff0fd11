"""JSON Schema by the `jsonschema` package, and Lark grammars by `llguidance`, held in bounds. Pure.

The schema comes from a client and the value from a model. Neither may make the server fetch, hang or crash. The package
bounds nothing: it fetches what a `$ref` names, follows references that double at each step, and matches a pattern for
as long as it takes.

schema          reads a schema, and finds the faults of a value or of the schema itself
check           one check, and what it says in a sentence
dialects        the drafts: their keywords and their metaschemas
validator       a subschema at work, where each step is counted
keywords        the few keywords that are not as the package has them
unevaluated     two more keywords; they depend on the results of the others
patterns        whether a pattern is found in a text, by an engine of linear time
check_budget    the most steps of one check
lark            whether a text keeps to a Lark grammar
declared        the schemas that a request declares, of its tools and of its answer
coercion        arguments as a tool's schema wants them
call_schemas    one schema for an answer that has to be calls

`format` and unknown keywords are ignored.

The package is loaded at the first use of one of its names, such as `schema.read_schema`. A server starts without it,
which saves 20 ms and 3 MB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .check_budget import SchemaUnusable
    from .schema import Schema, SchemaError, pattern_problem, read_schema

__all__ = ["Schema", "SchemaError", "SchemaUnusable", "pattern_problem", "read_schema"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import schema  # noqa: PLC0415 -- the point of this function

    return getattr(schema, name)
