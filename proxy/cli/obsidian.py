"""What to enter in a client; `serve` and `doctor` print the same, docs/howto/obsidian says more."""

from __future__ import annotations

import re

from ..settings import Settings

# Copilot asks for models of this name by the Responses API, and for all others by Chat Completions.
RESPONSES_MODELS = "gpt-5"

# ChatGPT MD lists a name that has one of the first in it and none of the second, and by default gives tools to the
# third, a date behind them or not.
LISTED = ("o3", "o4", "o1", "gpt-4", "gpt-5", "gpt-3")
HIDDEN = ("audio", "transcribe", "realtime", "o1-pro", "tts")
GIVEN_TOOLS = {
    "codex-mini-latest", "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-3.5-turbo-1106", "gpt-4", "gpt-4-0125-preview",
    "gpt-4-0613", "gpt-4-1106-preview", "gpt-4-turbo", "gpt-4-turbo-preview", "gpt-4.1", "gpt-4.1-mini",
    "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-chat-latest", "gpt-5-codex", "gpt-5-mini", "gpt-5-nano",
    "gpt-5-pro", "gpt-5.1", "gpt-5.1-chat-latest", "gpt-5.1-codex", "gpt-5.1-codex-max", "gpt-5.1-codex-mini",
    "gpt-5.2", "gpt-5.2-chat-latest", "gpt-5.2-codex", "gpt-5.2-pro", "o1", "o1-pro", "o3", "o3-mini", "o3-pro",
    "o4-mini",
}  # fmt: skip
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")

# A name that every plugin lists and gives its tools to.
GOOD_NAME = "gpt-5.2"


def copilot_api(model: str) -> str:
    """The API by which Obsidian Copilot asks for a model of this name."""
    return "Responses" if model.startswith(RESPONSES_MODELS) else "Chat Completions"


def chatgpt_md_lacks(model: str) -> str | None:
    """What ChatGPT MD, as it comes, keeps from a model of this name."""
    if not any(part in model for part in LISTED) or any(part in model for part in HIDDEN):
        return "does not list it"
    if _DATE.sub("", model) not in GIVEN_TOOLS and model not in GIVEN_TOOLS:
        return "gives it no tools"
    return None


def through_proxy(url: str, settings: Settings) -> str | None:
    """What clients elsewhere are given in place of `url`."""
    path = settings.base_path
    return f"Through the proxy: its own address with {path}/v1, in place of {url}" if path else None


def client_settings(url: str, settings: Settings) -> str:
    keyed = settings.api_key or settings.api_key_file
    key = "the key that tagcall was started with" if keyed else "anything, for instance `tagcall`"
    aliases = "".join(
        f"\n                 {name}: {copilot_api(name)}, answered by {model}"
        + (f" (ChatGPT MD {lacking})" if (lacking := chatgpt_md_lacks(name)) else "")
        for name, model in settings.alias
    )
    advice = (
        "" if any(chatgpt_md_lacks(name) is None for name, _ in settings.alias)
        else f"\n  In ChatGPT MD: --alias {GOOD_NAME}=MODEL gives a model a name that it lists and gives its tools to"
    )  # fmt: skip
    proxied = f"\n  {told}" if (told := through_proxy(url, settings)) else ""
    return f"""{proxied}
  In Obsidian Copilot: Settings > Copilot > Models > Add a provider > Add a custom provider
  (in Copilot 3: Add Model, with the provider "3rd party (openai-format)")
    Base URL     {url}
    API key      {key}
    Enable CORS  off
    Model        a name from {url}/models
                 {RESPONSES_MODELS}*: by the Responses API, any other: by Chat Completions; both have tools{aliases}
{advice}
  In other plugins: docs/howto/obsidian
  In any OpenAI SDK: base_url="{url}"
"""
