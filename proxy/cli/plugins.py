"""What `setup` says to enter in a plugin: the fields of docs/howto/obsidian, whose pages say more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..advice import command
from .obsidian import GOOD_NAME, chatgpt_md_lacks


@dataclass(frozen=True, slots=True)
class Plugin:
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
            "API key": "{key}", "Base URL": "{url}", "Enable CORS": "off",
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
    Plugin("another", "README.md", "in its settings", {"base URL": "{url}", "API key": "{key}", "model": "{model}"}),
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
    if (lacking := plugin.lacks(model or "")) is not None:
        which = f"{plugin.name} {lacking}" if model else f"{plugin.name} passes over some names"
        serve = command(f"serve --alias {GOOD_NAME}={model or 'MODEL'}")
        yield f"{which}: {serve} gives the model one that passes."
    yield f"docs/howto/obsidian/{plugin.page} says more."
