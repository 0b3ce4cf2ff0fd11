"""A checkout of a plugin to an extract: which labels its users still see, and what its lists hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from .plugins import Names, Plugin, shows

READ = Path(__file__).parent / "read"


class Extract(TypedDict):
    """What a page stands on. Only names; of the plugin's code there is nothing in it."""

    repository: str
    version: str
    labels: dict[str, list[str]]
    names: dict[str, list[str]]


def extract(plugin: Plugin, checkout: Path) -> Extract:
    """Reads nothing but the files that the table names. One that is not there has no labels."""
    sources = {file: _text(checkout / file) for file in plugin.labels}
    return {
        "repository": plugin.repository,
        "version": json.loads(_text(checkout / plugin.version_in) or "{}").get("version", "unknown"),
        "labels": {file: [label for label in plugin.labels[file] if shows(sources[file], label)] for file in sources},
        "names": {name: _names(where, checkout) for name, where in plugin.names.items()},
    }


def kept(name: str) -> Extract:
    """The one that the pages were written from."""
    read: Extract = json.loads((READ / f"{name}.json").read_text("utf-8"))
    return read


def keep(name: str, read: Extract) -> None:
    (READ / f"{name}.json").write_text(json.dumps(read, indent=1, ensure_ascii=False) + "\n", "utf-8")


def drift(before: Extract, now: Extract) -> Iterator[str]:
    """What a page has to be looked at for, a line each."""
    for file, labels in before["labels"].items():
        for label in labels:
            if label not in now["labels"].get(file, ()):
                yield f"'{label}' is no longer in {file}"
    for name, items in before["names"].items():
        found = now["names"].get(name, [])
        yield from (f"{name}: without '{item}' now" for item in items if item not in found)
        yield from (f"{name}: '{item}' is new" for item in found if item not in items)


def _text(file: Path) -> str:
    return file.read_text("utf-8") if file.is_file() else ""


def _names(where: Names, checkout: Path) -> list[str]:
    _, *after = re.split(where.begin, _text(checkout / where.file), maxsplit=1)
    return re.findall(where.item, re.split(where.end, after[0], maxsplit=1)[0]) if after else []
