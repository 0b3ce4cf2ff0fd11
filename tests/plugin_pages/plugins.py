"""What each page of docs/howto/obsidian says of its plugin, and where the plugin's sources have it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Names:
    """A list in a source file: what `item` finds between the first match of `begin` and the next of `end`."""

    file: str
    begin: str
    end: str
    item: str = r"""["']([^"']+)["']"""


@dataclass(frozen=True, slots=True)
class Plugin:
    """`labels`: what a user sees, by the file (a glob) that shows it. `version_in` is JSON with a `version`."""

    repository: str
    page: str
    labels: Mapping[str, Sequence[str]]
    names: Mapping[str, Names] = field(default_factory=dict)
    version_in: str = "manifest.json"


PLUGINS: Mapping[str, Plugin] = {
    "copilot": Plugin(
        "logancyang/obsidian-copilot",
        "copilot.md",
        {
            "src/modelManagement/ui/tabs/ByokPanel.tsx": ["Add a provider"],
            "src/modelManagement/ui/dialogs/AddProviderDialog.tsx": ["Add a custom provider"],
            "src/modelManagement/ui/dialogs/ConfigureProviderDialog.tsx": [
                "Display name", "API key", "Base URL", "Test", "Save",
            ],
            "src/modelManagement/ui/components/CorsCompatibilitySetting.tsx": ["Enable CORS"],
        },
        {"asked by Responses": Names("src/utils.ts", r"function isGPT5Model", r"\n}", r'startsWith\("([^"]+)"')},
    ),
    "copilot-3": Plugin(
        "logancyang/obsidian-copilot",
        "copilot.md",
        {
            "src/settings/v2/components/ModelTable.tsx": ["Add Model"],
            "src/settings/v2/components/ModelAddDialog.tsx": [
                "Model Name", "Provider", "Base URL", "API Key", "CORS", "Test", "Add Model",
            ],
            "src/constants.ts": ["3rd party (openai-format)"],
        },
        {"asked by Responses": Names("src/utils.ts", r"function isGPT5Model", r"\n}", r'startsWith\("([^"]+)"')},
    ),
    "chatgpt-md": Plugin(
        "bramses/chatgpt-md",
        "chatgpt-md.md",
        {
            "src/Views/ChatGPT_MDSettingsTab.ts": [
                "API Keys", "OpenAI API Key", "OpenAI", "API URL", "Tool Calling",
                "Enable AI Tool Calling (Experimental, read only)", "Tool-Enabled Models",
            ],
            "src/Commands/ModelSelectHandler.ts": ["Select Model"],
        },
        {
            "listed": Names(
                "src/Services/Adapters/OpenAIAdapter.ts", "isGenerationModel =", ";", r'includes\("([^"]+)"'
            ),
            "hidden all the same": Names(
                "src/Services/Adapters/OpenAIAdapter.ts", "isExcluded =", ";", r'includes\("([^"]+)"'
            ),
            "given tools": Names(
                "src/Services/ToolSupportDetector.ts", r"# OpenAI", r"\n\n", r"(?m)^([a-z][\w.*-]+)$"
            ),
        },
    ),
    "smart-composer": Plugin(
        "glowingjade/obsidian-smart-composer",
        "smart-composer.md",
        {
            "src/components/settings/sections/ProvidersSection.tsx": ["Add custom provider"],
            "src/components/settings/modals/ProviderFormModal.tsx": ["ID", "Provider Type", "API Key", "Base URL"],
            "src/constants.ts": ["OpenAI Compatible", "No Stainless Headers"],
            "src/components/settings/sections/models/ChatModelsSubSection.tsx": ["Add custom model"],
            "src/components/settings/modals/AddChatModelModal.tsx": ["Provider ID", "Model Name"],
        },
    ),
    "yolo": Plugin(
        "Lapis0x0/obsidian-yolo",
        "yolo.md",
        {
            "src/components/settings/modals/ProviderFormModal.tsx": ["ID", "Provider preset", "API type"],
            "src/i18n/locales/en.ts": [
                "Add provider", "API key", "Base URL", "No stainless headers", "Network request method",
                "Browser request", "Obsidian built-in request", "Desktop direct connection (recommended)",
            ],
            "src/constants.ts": ["OpenAI Compatible", "OpenAI Responses"],
        },
    ),
    "ai-providers": Plugin(
        "pfrankov/obsidian-ai-providers",
        "ai-providers.md",
        {
            "src/i18n/en.json": [
                "Add provider", "Provider type", "Provider name", "Provider URL", "API key", "Model",
                "Refresh models list",
            ],
        },
    ),
    "smart-connections": Plugin(
        "brianpetro/jsbrains",
        "smart-connections.md",
        {
            "smart-chat-model/adapters/_custom.js": [
                "Custom API (Local or Remote, OpenAI format)", "API Adapter", "Protocol", "Hostname", "Port", "Path",
                "Max Input Tokens", "Model Name", "Streaming", "API Key",
            ],
        },
        {"hidden": Names("smart-chat-model/adapters/openai.js", r"EXCLUDED_PREFIXES = \[", r"\]")},
        "smart-chat-model/package.json",
    ),
    "text-generator": Plugin(
        "nhaouari/obsidian-textgenerator-plugin",
        "text-generator.md",
        {
            "src/LLMProviders/langchain/openaiChat.tsx": ["OpenAI Chat", "API Key", "Base Path"],
            "src/LLMProviders/custom/custom.tsx": ["Endpoint", "CORS Bypass"],
        },
    ),
    "bmo": Plugin(
        "longy2k/obsidian-bmo-chatbot",
        "bmo.md",
        {
            "src/components/settings/RESTAPIURLSettings.ts": [
                "REST API Connection", "API Key", "REST API URL", "Enable Stream",
            ],
            "src/components/settings/APIConnections/OpenAIConnections.ts": ["OpenAI-Based URL", "Enable Stream"],
        },
    ),
}  # fmt: skip


def shows(source: str, label: str) -> bool:
    """Whether a user of this source sees `label`: a whole literal, or the whole text of an element."""
    return re.search(rf"""(["'`>])\\?\s*{re.escape(label)}\s*(["'`<])""", source) is not None
