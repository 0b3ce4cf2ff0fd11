"""What servers were recorded to say, and what clients are told then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest

from proxy.backends.chat.errors import concession, failure, read_rejection
from proxy.backends.chat.requests import Manner
from proxy.contracts import Prompt

PROMPT = Prompt("m", None, (), effort="low")

# Status, body, the answer's status and code.
SAID: dict[str, tuple[int, object, int, str]] = {
    "llama.cpp: too long": (
        400, {"error": {"code": 400, "message": "request (6030 tokens) exceeds the available context size (2048 "
        "tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 6030, "n_ctx": 2048}},
        400, "context_length_exceeded",
    ),
    "llama.cpp: image": (
        500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may "
        "need to provide the mmproj", "type": "server_error"}}, 400, "unsupported_value",
    ),
    "llama.cpp: loading": (
        503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        503, "server_is_overloaded",
    ),
    "llama.cpp: key": (
        401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}},
        502, "backend_auth",
    ),
    "llama.cpp: no such path": (
        404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}, 502, "backend_error",
    ),
    "Ollama: no such model": (
        404, {"error": {"message": 'model "nope" not found, try pulling it first', "type": "api_error", "param": None,
        "code": None}}, 400, "model_not_found",
    ),
    "Ollama: image": (
        500, {"error": {"message": "this model is missing data required for image input", "type": "api_error"}},
        400, "unsupported_value",
    ),
    "LM Studio: no model": (
        404, {"error": {"message": "No models loaded. Please load a model in the developer page or use the 'lms load' "
        "command.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}},
        400, "model_not_found",
    ),
    "LM Studio: too long": (
        400, {"error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
        "with context length of only 4096 tokens, which is not enough."}, 400, "context_length_exceeded",
    ),
    "LM Studio: image": (
        400, {"error": "Model does not support images. Please use a model that does."}, 400, "unsupported_value",
    ),
    "vLLM: too long": (
        400, {"object": "error", "message": "This model's maximum context length is 2048 tokens. However, you "
        "requested 6030 tokens in the messages. Please reduce the length of the messages.", "type": "BadRequestError",
        "param": None, "code": 400}, 400, "context_length_exceeded",
    ),
    "vLLM: no such model": (
        404, {"object": "error", "message": "The model `nope` does not exist.", "type": "NotFoundError", "param": None,
        "code": 404}, 400, "model_not_found",
    ),
    "vLLM: image": (
        400, {"object": "error", "message": "m is not a multimodal model", "type": "BadRequestError", "code": 400},
        400, "unsupported_value",
    ),
    "OpenRouter: no such model": (
        400, {"error": {"message": "nope/nope is not a valid model ID", "code": 400}}, 400, "model_not_found",
    ),
    "OpenRouter: no credits": (
        402, {"error": {"message": "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
        "code": 402}}, 429, "insufficient_quota",
    ),
    "OpenRouter: image": (
        404, {"error": {"message": "No endpoints found that support image input", "code": 404}},
        400, "unsupported_value",
    ),
    "OpenRouter: no key": (401, {"error": {"message": "No auth credentials found", "code": 401}}, 502, "backend_auth"),
    "OpenRouter: too often": (
        429, {"error": {"message": "Rate limit exceeded: free-models-per-min. ", "code": 429}},
        429, "rate_limit_exceeded",
    ),
    "OpenAI: no quota": (
        429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "param": None,
        "code": "insufficient_quota"}}, 429, "insufficient_quota",
    ),
    "FastAPI": (422, {"detail": "messages is required"}, 400, "invalid_prompt"),
    "boom": (500, {"error": {"message": "boom"}}, 502, "backend_error"),
    "nothing said": (500, {}, 502, "backend_error"),
    "strange": (418, [1], 400, "invalid_prompt"),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "told", "code"), SAID.values(), ids=SAID)
def test_what_servers_say_has_its_answer(status: int, body: object, told: int, code: str) -> None:
    error = failure(read_rejection(status, orjson.dumps(body)), "The server")
    assert (error.status, error.code) == (told, code)
    assert "\n" not in error.message


def test_a_sentence_says_whose_words_it_repeats() -> None:
    error = failure(read_rejection(500, b'{"error": "bo\\nom"}'), "The server")
    assert error.message == "The server says: bo om"


ADDRESS = "give --backend the whole address of a Chat Completions server"
PLAIN = {
    200: ADDRESS, 404: ADDRESS, 405: ADDRESS, 500: ADDRESS, 401: "--backend-key-file",
    302: "its clients to another address",
    502: "answers 502.", 503: "answers 503.", 504: "answers 504.", 429: "answers 429.",
}  # fmt: skip


@pytest.mark.parametrize(("status", "words"), PLAIN.items())
@pytest.mark.parametrize("body", [b"<html>404</html>", b"Not found", b""])
def test_what_is_no_json_is_not_repeated(status: int, words: str, body: bytes) -> None:
    error = failure(read_rejection(status, body), "The server")
    assert words in error.message
    assert b"html" not in error.message.encode()
    assert error.status >= 429


def test_a_redirect_is_none_even_if_it_says_so_in_json() -> None:
    assert "redirects" in failure(read_rejection(307, b'{"error": "moved"}'), "The server").message


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", 86_400),
        ("1e30", 86_400),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None),
    ],
)
def test_when_to_come_again_is_passed_on(header: str, seconds: float | None) -> None:
    assert failure(read_rejection(429, b"{}", header), "The server").retry_after == seconds


def test_a_sentence_without_an_end_is_read_as_far_as_it_is_looked_at() -> None:
    """A mask over each beginning of the key in all of it took half a minute."""
    key = "sk-" + "x" * 100
    rejection = read_rejection(500, b'{"error": {"message": "%b"}}' % (key[:6].encode() * 100_000))
    assert rejection.said is not None
    assert len(rejection.said) == 4000
    assert "sk-xxx" not in failure(rejection, "The server", key=key).message


def test_when_to_come_again_may_be_a_date() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = failure(read_rejection(429, b"{}", at), "The server").retry_after
    assert seconds is not None
    assert 0 < seconds <= 100


def test_a_server_that_is_loading_is_worth_asking_again_soon() -> None:
    assert failure(read_rejection(503, b'{"error": {"message": "Loading model"}}'), "s").retry_after == 5


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no sk-secret-1 here", "no *** here"),
        ("no sk-secr****-1 here", "no *******-1 here"),
        ("sk-secret-1sk-secret", "******"),
        ("the sk-se of it", "the sk-se of it"),
        ("", ""),
    ],
)
def test_no_sentence_holds_the_beginning_of_the_key(said: str, told: str) -> None:
    body = orjson.dumps({"error": {"message": f"Incorrect API key provided: {said}."}})
    message = failure(read_rejection(401, body), "The server", key="sk-secret-1").message
    assert told in message
    assert "sk-secr" not in message


def test_no_sentence_holds_the_key() -> None:
    body = orjson.dumps({"error": {"message": "Incorrect API key provided: sk-secret."}})
    assert "sk-secret" not in failure(read_rejection(401, body), "The server", key="sk-secret").message


BAD_SCHEMAS = (
    "Automatic parser generation failed: JSON schema error at #: unrecognized type strange",
    "Invalid schema for response_format 'answer'",
    "'guided_json' is not supported: unsupported JSON schema feature",
)


@pytest.mark.parametrize("said", BAD_SCHEMAS)
def test_a_schema_that_is_refused_is_told_from_other_bad_requests(said: str) -> None:
    rejection = read_rejection(400, orjson.dumps({"error": {"message": said}}))
    assert failure(rejection, "s", held=True).code == "invalid_json_schema"
    assert failure(rejection, "s").code == "invalid_prompt"
    assert concession(rejection, Manner(), PROMPT, held=True) is None


FLAT, EFFORTLESS, FREE = Manner(flat=True), Manner(efforts=("low",)), Manner(grammar=False)
CONCESSIONS: dict[str, tuple[int, str, Manner | None]] = {
    "llama.cpp": (
        400, "Automatic parser generation failed: \n--\nError: Jinja Exception: Conversation roles must alternate",
        FLAT,
    ),
    "vLLM": (400, "Conversation roles must alternate user/assistant/user/assistant/...", FLAT),
    "Gemma": (500, "System role not supported", FLAT),
    "LM Studio": (400, 'Error rendering prompt with jinja template: "Error: Only user and assistant roles"', FLAT),
    "llama.cpp, grammar": (400, "Failed to initialize samplers: failed to parse grammar", FREE),
    "Ollama, effort": (400, '"gemma3:4b" does not support thinking', EFFORTLESS),
    "Ollama, its value": (400, 'invalid reasoning value: "minimal" (must be "high", "medium", "low")', EFFORTLESS),
    "OpenAI": (400, "Unsupported parameter: 'reasoning_effort' is not supported with this model.", EFFORTLESS),
    "another": (400, "messages is required", None),
    "too long": (400, "The chat template makes this exceed the context size", None),
    "a limit": (429, "Conversation roles must alternate", None),
}  # fmt: skip


@pytest.mark.parametrize(("status", "said", "manner"), CONCESSIONS.values(), ids=CONCESSIONS)
def test_what_a_server_would_not_take_may_be_asked_otherwise(status: int, said: str, manner: Manner | None) -> None:
    rejection = read_rejection(status, orjson.dumps({"error": {"message": said}}))
    assert concession(rejection, Manner(), PROMPT, held=False) == manner
    if manner is not None:
        assert concession(rejection, manner, PROMPT, held=False) is None, "it is tried once"
