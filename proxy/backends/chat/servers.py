"""The local model servers whose usual address is known."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class LocalServer(Struct, frozen=True):
    """`start` and `more_context` are what to do, as a part of a sentence."""

    name: str
    address: str
    start: str
    more_context: str


# By what `--backend` says.
LOCAL_SERVERS: Mapping[str, LocalServer] = {
    "ollama": LocalServer(
        "Ollama",
        "http://127.0.0.1:11434/v1",
        "start it with `ollama serve`",
        "start it with OLLAMA_CONTEXT_LENGTH=16384",
    ),
    "lmstudio": LocalServer(
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        "start its server with `lms server start`",
        "load the model with `lms load MODEL --context-length 16384`",
    ),
    "llamacpp": LocalServer(
        "llama.cpp",
        "http://127.0.0.1:8080/v1",
        "start it with `llama-server -m MODEL.gguf -c 16384`",
        "start it with `-c 16384`",
    ),
    "vllm": LocalServer(
        "vLLM",
        "http://127.0.0.1:8000/v1",
        "start it with `vllm serve MODEL`",
        "start it with `--max-model-len 16384`",
    ),
}
