"""What to enter in a client; `serve` and `doctor` print the same, docs/howto/obsidian says more."""

from __future__ import annotations

from ..settings import Settings

# Copilot asks for models of this name by the Responses API, and for all others by Chat Completions.
RESPONSES_MODELS = "gpt-5"


def copilot_api(model: str) -> str:
    """The API by which Obsidian Copilot asks for a model of this name."""
    return "Responses" if model.startswith(RESPONSES_MODELS) else "Chat Completions"


def client_settings(url: str, settings: Settings) -> str:
    keyed = settings.api_key or settings.api_key_file
    key = "the key that tagcall was started with" if keyed else "anything, for instance `tagcall`"
    aliases = "".join(
        f"\n                 {name}: {copilot_api(name)}, answered by {model}" for name, model in settings.alias
    )
    return f"""
  In Obsidian Copilot: Settings > Copilot > Models > Add a custom provider
  (in Copilot 3: a custom model of the provider "3rd party (openai-format)")
    Base URL     {url}
    API key      {key}
    Enable CORS  off
    Model        a name from {url}/models
                 {RESPONSES_MODELS}*: by the Responses API, any other: by Chat Completions; both have tools{aliases}

  In other plugins: docs/howto/obsidian
  In any OpenAI SDK: base_url="{url}"
"""
