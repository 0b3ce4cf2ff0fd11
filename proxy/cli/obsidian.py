"""What to enter in a client; `serve` and `doctor` print the same."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..advice import command
from ..plugins import GOOD_NAME, chatgpt_md_lacks, named_plugins
from ..server import EVERYWHERE
from ..settings import Settings
from ..wire.models import is_pattern, model_behind

# Of port 0, which stands for any that is free when the server starts.
NO_ADDRESS = "It prints what to enter: with --port 0 the address changes at each start."

# Copilot asks for models of this name by the Responses API, and for all others by Chat Completions.
RESPONSES_MODELS = "gpt-5"


def copilot_api(model: str) -> str:
    """The API by which Obsidian Copilot asks for a model of this name."""
    return "Responses" if model.startswith(RESPONSES_MODELS) else "Chat Completions"


def from_elsewhere(url: str, settings: Settings) -> str | None:
    """What clients elsewhere are given in place of `url`."""
    if path := settings.base_path:
        return f"Through the proxy: the proxy's address with {path}/v1, in place of {url}"
    if settings.host in EVERYWHERE:
        here = urlsplit(url)
        return f"From other machines: {here.scheme}://ADDRESS:{here.port}{here.path}, with the address of this machine"
    return None


def client_settings(url: str, settings: Settings) -> str:
    keyed = settings.api_key or settings.api_key_file
    key = "the key that tagcall was started with" if keyed else "anything, for instance `tagcall`"
    aliases = "".join(
        f"\n                 {name}: {copilot_api(name)}, answered by {model}"
        + (f" (ChatGPT MD {lacking})" if (lacking := chatgpt_md_lacks(name)) else "")
        for name, model in settings.alias
        if not is_pattern(name)
    )
    advice = (
        "" if any(chatgpt_md_lacks(name) is None for name, _ in settings.alias)
        else f"\n  In ChatGPT MD: --alias {GOOD_NAME}=MODEL lists MODEL under a name that gets tools there"
    )  # fmt: skip
    proxied = f"\n  {told}" if (told := from_elsewhere(url, settings)) else ""
    return f"""{proxied}
  In Obsidian Copilot: Settings > Copilot > Models > Add a provider > Add a custom provider
  (in Copilot 3: Add Model, with the provider "3rd party (openai-format)")
    Base URL     {url}
    API key      {key}
    Enable CORS  off
    Model        a name from {url}/models
                 {RESPONSES_MODELS}*: Responses API. Any other, gpt-6* too: Chat Completions.
                 Tools work with both{aliases}
{advice}
  In other plugins: {command("setup --plugin NAME")} with one of {", ".join(named_plugins())}
  In any OpenAI SDK: base_url="{url}"
  In Claude Code: ANTHROPIC_BASE_URL={url.removesuffix("/v1")}, ANTHROPIC_AUTH_TOKEN: the same API key
    {_claude(settings)}
"""


def _claude(settings: Settings) -> str:
    """Who answers for Anthropic's models, which its programs name whatever is set."""
    if (model := model_behind("claude-sonnet-5", dict(settings.alias))) is not None:
        return f"claude-* is answered by {model}"
    first = settings.model[0] if settings.model else "the first model of the list"
    return f"claude-* is answered by {first}; --alias 'claude-*=MODEL' chooses another"
