"""Paths of OpenAI's API that a text model cannot serve, and what to do instead.

They are told apart from a wrong base URL, and with a 404: what will not heal must not be tried again,
as clients do with 5xx.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import RequestError

_NO_FILES = "send text and images in the conversation itself."
_NO_AUDIO = "it hears and speaks no audio: choose another provider for speech."

# The first name of a path without `/v1` -> what to do instead.
UNSERVED: Mapping[str, str] = {
    "assistants": "use POST /v1/responses.",
    "audio": _NO_AUDIO,
    "batches": "send the requests one by one.",
    "completions": "use POST /v1/chat/completions: the model is made for conversations.",
    "embeddings": "it has no embedding model: choose another provider for embeddings, for instance a local one.",
    "engines": "use GET /v1/models.",
    "evals": "there is nothing of the kind here.",
    "files": _NO_FILES,
    "fine_tuning": "its models are as they are.",
    "images": "it makes no images: choose another provider for them.",
    "moderations": "choose another provider for moderation.",
    "threads": "use POST /v1/responses with 'previous_response_id'.",
    "uploads": _NO_FILES,
    "vector_stores": "search on the client's side, and offer the search as a tool.",
    "videos": "it makes no videos: choose another provider for them.",
}


def unserved(path: str) -> RequestError | None:
    """The error for a canonical path that is part of the API but not of this server."""
    name = path.split("/")[1]
    if name not in UNSERVED:
        return None
    return RequestError(f"tagcall does not serve /v1/{name}: {UNSERVED[name]}", status=404, code="unsupported_endpoint")
