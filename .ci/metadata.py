"""What a package index shows of the package: where the repository is, and the README with links that lead there.

A release job of GitHub says the address in `GITHUB_SERVER_URL`, `GITHUB_REPOSITORY` and `GITHUB_SHA`. Anywhere else
nobody knows it, so the README keeps its links as they are, and there are no addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A link or a picture of Markdown whose target is a file beside the README: no address, and no heading of its own.
_RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#|/)([^)\s]+)\)")
_PAGES = {"Changelog": "docs/changelog.md", "Documentation": "docs/README.md", "Security": "docs/security.md"}


def urls(repository: str) -> dict[str, str]:
    pages = {name: f"{repository}/blob/HEAD/{path}" for name, path in _PAGES.items()}
    return {"Repository": repository, "Issues": f"{repository}/issues", **pages}


def with_whole_links(text: str, repository: str, commit: str) -> str:
    """`text` with links to files of `commit`; a picture's is to the file itself, not to GitHub's page about it."""

    def whole(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        return f"{picture}{words}({repository}/{'raw' if picture else 'blob'}/{commit}/{target})"

    return _RELATIVE.sub(whole, text)


def shown(text: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The dynamic members of `[project]`: `readme`, and `urls` where the repository is known."""
    server, name, commit = (variables.get(f"GITHUB_{word}") for word in ("SERVER_URL", "REPOSITORY", "SHA"))
    readme = {"content-type": "text/markdown"}
    if not (server and name and commit):
        return {"readme": {**readme, "text": text}}
    repository = f"{server}/{name}"
    return {"readme": {**readme, "text": with_whole_links(text, repository, commit)}, "urls": urls(repository)}


class Shown(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata.update(shown((Path(self.root) / "README.md").read_text("utf-8"), os.environ))
