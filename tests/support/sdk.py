"""The official client, as tests with many conversations have it."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient


def openai_client(url: str, api_key: str = "anything", **options: Any) -> AsyncOpenAI:
    """Asks once. It reads no certificates, which takes longer than most tests: once for itself and for each proxy."""
    http = DefaultAsyncHttpxClient(verify=False)
    return AsyncOpenAI(base_url=url, api_key=api_key, max_retries=0, http_client=http, **options)
