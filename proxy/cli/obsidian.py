"""What to enter in Obsidian Copilot; `serve` and `doctor` print the same."""

from __future__ import annotations

from ..settings import Settings


def copilot_settings(url: str, settings: Settings) -> str:
    keyed = settings.api_key or settings.api_key_file
    key = "the key that tagcall was started with" if keyed else "anything, for instance `tagcall`"
    return f"""
  In Obsidian Copilot: Settings > Models > Add a custom model
    Provider   3rd party (openai-format)
    Base URL   {url}
    API key    {key}
    Model      a name from {url}/models

  In any OpenAI SDK: base_url="{url}"
"""
