"""Which API a request belongs to, by its head alone. So an API's room need not be loaded to know."""

from __future__ import annotations

from aiohttp import web

from .dialects import dialect_of

# What every client of Anthropic sends, and nobody else.
ANTHROPIC_VERSION = "anthropic-version"


def of_anthropic(request: web.Request, path: str) -> bool:
    return path.split("/")[1] == "messages" or ANTHROPIC_VERSION in request.headers


def of_chat(_: web.Request, path: str) -> bool:
    return path.startswith("/chat/")


def of_ollama(_: web.Request, path: str) -> bool:
    return path.startswith("/api/") and not path.startswith("/api/codex/")


def of_tokligence(request: web.Request, path: str) -> bool:
    return path.endswith("/submit_tool_outputs") or (path == "/responses" and dialect_of(request) == "tokligence")
