"""The client's tools, which search and read a folder of Markdown notes, and where those notes are."""

from __future__ import annotations

from pathlib import Path

from openai.types.responses import FunctionToolParam

from ...errors import UsageError

# Beside the packages, in a checkout as in a wheel, which has these few alone.
_SAMPLES = Path(__file__).resolve().parents[3] / "fixtures"


def samples_folder() -> Path:
    """The folder that holds `vault/` and the `demo-*` fixtures."""
    if (_SAMPLES / "vault").is_dir():
        return _SAMPLES
    raise UsageError("The sample fixtures are missing from this installation; install tagcall again.")


def _tool(name: str, description: str, parameter: str, meaning: str) -> FunctionToolParam:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {parameter: {"type": "string", "description": meaning}},
            "required": [parameter],
            "additionalProperties": False,
        },
        "strict": True,
    }


TOOLS = [
    _tool(
        "search_notes", "Find the notes of the vault that contain all the given words.", "query", "One or more words."
    ),
    _tool("read_note", "Read one note of the vault.", "path", "The path that search_notes gave."),
]


class Vault:
    """The notes under a folder, by their paths inside it."""

    def __init__(self, folder: Path) -> None:
        self._notes = {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*.md"))
        }

    def call(self, name: str, arguments: object) -> str:
        """The result of a tool call as text, mistakes included: the model is to read them."""
        match name, arguments:
            case "search_notes", {"query": str(query)}:
                return self.search(query)
            case "read_note", {"path": str(path)}:
                return self._notes.get(path, f"There is no note {path}.")
            case _:
                return f"There is no tool {name} that takes these arguments."

    def search(self, query: str) -> str:
        """Each note that has all the words, with the first of the lines that have the most of them."""
        words = query.casefold().split()
        hits = [
            f"{path}: {max(text.splitlines(), key=lambda line: _count(words, line))}"
            for path, text in self._notes.items()
            if words and _count(words, text) == len(words)
        ]
        return "\n".join(hits) or "No note has all of these words."


def _count(words: list[str], text: str) -> int:
    return sum(word in text.casefold() for word in words)
