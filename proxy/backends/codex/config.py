"""config.toml: the settings that leave codex nothing but text, and the provider it sends its requests to."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

PROVIDER = "tagcall"
# Seconds that codex waits for a mute model longer than the proxy does, so that one of them decides.
SLACK = 60

# Each line is there because without it a version between 0.89 and 0.171 adds a tool, a paragraph or a network
# request. Unknown lines are ignored by all of them. Left out for what they do: `approval_policy = "untrusted"`
# (0.169 does not start) and `[agents] enabled` (0.110 to 0.140 start no thread).
TEXT_ONLY = """\
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
project_doc_max_bytes = 0
project_root_markers = []
show_raw_agent_reasoning = true
check_for_update_on_startup = false
include_permissions_instructions = false
include_apps_instructions = false
include_environment_context = false
include_collaboration_mode_instructions = false

[features]
shell_tool = false
unified_exec = false
shell_snapshot = false
remote_models = false
view_image = false
apps = false
plugins = false
hooks = false
goals = false
multi_agent = false
collab = false
image_generation = false
browser_use = false
computer_use = false
in_app_browser = false
skill_search = false
tool_suggest = false
sleep_tool = false
remote_plugin = false
plugin_sharing = false
workspace_dependencies = false
enable_request_compression = false
unbounded_connection_retries = false
# 0.169 else sends its base instructions twice to a model without tools.
incremental_tools = false

[tools.update_plan]
enabled = false

[tools.experimental_request_user_input]
enabled = false

[skills]
include_instructions = false

[skills.bundled]
enabled = false

[history]
persistence = "none"

[analytics]
enabled = false
"""

# Unpacked at each start by versions that know no `skills.bundled`, and announced in 3 KB.
SKILLS_OF_089 = ("skill-creator", "skill-installer")


class Provider(Struct, frozen=True):
    """Where codex sends its requests.

    With an `upstream` URL it goes there without any login; without one to codex's own service with the login
    of its home. `builtin` leaves codex's own provider entry in charge, whose retries cannot be switched off.
    """

    upstream: str | None = None
    builtin: bool = False

    def lines(self, idle_timeout: float) -> str:
        if self.builtin:
            return ""
        where = f"base_url = {_toml(self.upstream)}\n" if self.upstream else ""
        return (
            f'\n[model_providers.{PROVIDER}]\nname = "{PROVIDER}"\n{where}wire_api = "responses"\n'
            f"requires_openai_auth = {'false' if self.upstream else 'true'}\n"
            "request_max_retries = 0\nstream_max_retries = 0\n"
            f"stream_idle_timeout_ms = {round((idle_timeout + SLACK) * 1000)}\n"
        )


def config_text(
    provider: Provider, idle_timeout: float, *, catalog: Path | None = None, skills_in: Path | None = None
) -> str:
    """config.toml. `catalog` is the model table; `skills_in` is the home whose unpacked skills are to be silent."""
    top = "" if provider.builtin else f'model_provider = "{PROVIDER}"\n'
    if catalog is not None:
        top += f"model_catalog_json = {_toml(str(catalog))}\n"
    skills = ""
    if skills_in is not None:
        paths = (skills_in / "skills/.system" / name / "SKILL.md" for name in SKILLS_OF_089)
        skills = "".join(f"\n[[skills.config]]\npath = {_toml(str(path))}\nenabled = false\n" for path in paths)
    return top + TEXT_ONLY + skills + provider.lines(idle_timeout)


def _toml(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
