"""The values that `setup` and the page tell you to enter in a plugin. The pages in docs/howto/obsidian say more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

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

# The pages, in a checkout and in a wheel alike; and the one that is of no plugin.
PAGES = Path(__file__).resolve().parents[1] / "docs" / "howto" / "obsidian"
ANY = "README.md"

# A name that every plugin lists and gives its tools to.
GOOD_NAME = "gpt-5.2"


def chatgpt_md_lacks(model: str) -> str | None:
    """What ChatGPT MD, as it comes, keeps from a model of this name."""
    if not any(part in model for part in LISTED) or any(part in model for part in HIDDEN):
        return "does not list it"
    if _DATE.sub("", model) not in GIVEN_TOOLS and model not in GIVEN_TOOLS:
        return "gives it no tools"
    return None


class Plugin(Struct, frozen=True):
    """`fields` are names and values as the plugin shows them; `{url}`, `{root}`, `{host}`, `{port}`, `{path}`, `{key}`
    and `{model}` are filled in. `page` is its file in docs/howto/obsidian. `lacks` says what it keeps from a model of
    some name, as the end of a sentence.
    """

    name: str
    page: str
    where: str
    fields: Mapping[str, str]
    lacks: Callable[[str], str | None] = lambda _: None


PLUGINS = (
    Plugin(
        "Copilot", "copilot.md", "Settings > Copilot > Models > Add a provider > Add a custom provider",
        {
            "Display name": "tagcall", "API key": "{key}", "Base URL": "{url}", "Enable CORS": "off",
            "models": "press Test, then choose from the list",
        },
    ),
    Plugin(
        "ChatGPT MD", "chatgpt-md.md", "Settings > ChatGPT MD",
        {
            "OpenAI API Key": "{key}", "API URL": "{root}",
            "Enable AI Tool Calling (Experimental, read only)": "on, for tools",
            "Tool-Enabled Models": "add a line: {model}",
        },
        lacks=chatgpt_md_lacks,
    ),
    Plugin(
        "Smart Composer", "smart-composer.md", "Settings > Smart Composer > Providers > Add custom provider",
        {
            "ID": "tagcall", "Provider Type": "OpenAI Compatible", "API Key": "{key}", "Base URL": "{url}",
            "No Stainless Headers": "off", "Model Name": "{model} (Models > Add custom model)",
        },
    ),
    Plugin(
        "YOLO", "yolo.md", "Settings > YOLO > Providers > Add provider > custom",
        {
            "ID": "tagcall", "Provider preset": "OpenAI Compatible", "API type": "OpenAI Compatible",
            "API key": "{key}", "Base URL": "{url}", "No stainless headers": "off",
        },
    ),
    Plugin(
        "AI Providers, Local GPT", "ai-providers.md", "Settings > AI Providers > Add provider",
        {
            "Provider type": "OpenAI", "Provider name": "tagcall", "Provider URL": "{url}", "API key": "{key}",
            "Model": "press Refresh models list, then choose",
        },
    ),
    Plugin(
        "Smart Connections", "smart-connections.md", "as chat model: Custom API (Local or Remote, OpenAI format)",
        {
            "API Adapter": "openai", "Model Name": "{model}", "Protocol": "http", "Hostname": "{host}",
            "Port": "{port}", "Path": "{path}/chat/completions", "Streaming": "on", "Max Input Tokens": "200000",
            "API Key": "{key}",
        },
    ),
    Plugin(
        "Text Generator", "text-generator.md", "as provider: OpenAI Chat",
        {"API Key": "{key}", "Base Path": "{url}", "model": "{model}"},
    ),
    Plugin(
        "BMO Chatbot", "bmo.md", "Settings > BMO Chatbot > REST API Connection",
        {"API Key": "{key}", "REST API URL": "{url}", "Enable Stream": "on"},
    ),
    Plugin("any other client", ANY, "in its settings", {"base URL": "{url}", "API key": "{key}", "model": "{model}"}),
)  # fmt: skip


def lines_for(plugin: Plugin, url: str, key: str, model: str | None) -> Iterator[str]:
    """What to enter, ready to be pasted; for any model where none is named."""
    parts = urlsplit(url)
    filled = {
        "url": url, "root": url.removesuffix("/v1"), "host": parts.hostname or "", "port": parts.port,
        "path": parts.path, "key": key,
        "model": model or f"a name from {url}/models",
    }  # fmt: skip
    yield f"In {plugin.name}: {plugin.where}"
    width = max(map(len, plugin.fields))
    for name, value in plugin.fields.items():
        yield f"  {name:<{width}}  {value.format(**filled)}"
    if (lacking := what_it_lacks(plugin, model)) is not None:
        yield lacking
    if (page := PAGES / plugin.page).is_file():
        yield f"{page} says more."


def named_plugins() -> dict[str, Plugin]:
    """By name, as `setup --plugin` takes it, each plugin that has a page."""
    return {plugin.page.removesuffix(".md"): plugin for plugin in PLUGINS if plugin.page != ANY}


def what_it_lacks(plugin: Plugin, model: str | None) -> str | None:
    """What the plugin keeps from the model, or from some models where none is named, and what helps."""
    if (lacking := plugin.lacks(model or "")) is None:
        return None
    which = f"{plugin.name} {lacking}" if model else f"{plugin.name} passes over some names"
    return f"{which}: with the flag --alias {GOOD_NAME}={model or 'MODEL'} the model has a name that passes."
