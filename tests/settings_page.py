"""`make docs`: docs/reference/settings.md, from the table in `proxy/settings.py`."""

from __future__ import annotations

from itertools import groupby

from proxy.settings import SETTINGS, Setting

_INTRODUCTION = """\
# Settings

A flag wins over its environment variable, the variable over `tagcall.toml`, and the file over the default. `tagcall
settings` prints the values in force, and where each came from. `setup`, `settings`, `record` and `service install`
(behind `--`) take the same flags as `serve`.

In the variable of a repeatable flag, put commas between the values. A switch is `1` or `0`, `true` or `false`, `yes`
or `no`, `on` or `off`, in upper or lower case. Any other value is an error, and so is a name that is nearly that of a
setting. Any other variable that begins with `TAGCALL_` has no effect, and tagcall tells you so. Kubernetes sets such
variables in the pods beside a Service named `tagcall` (`TAGCALL_PORT=tcp://...`): tagcall ignores these, and
`enableServiceLinks: false` in the pod's specification keeps them away.

`tagcall.toml` has the same names, without a table. A repeatable setting takes a list. The file is in
`~/.config/tagcall` (or `$XDG_CONFIG_HOME/tagcall`; on macOS and Windows in the system's own folder for settings).
`--config FILE` names another one, and `--config none` reads none:

```toml
port = 8788
alias = ["notes=gpt-5.5"]
call-key = "required"
```
"""


def settings_page() -> str:
    lines = [_INTRODUCTION.rstrip()]
    for group, rows in groupby(SETTINGS, lambda row: row.group):
        lines += ["", f"## {group}", "", "| flag | environment | default | commands | meaning |"]
        lines += ["|---|---|---|---|---|", *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(row: Setting) -> str:
    flag = row.flag if row.is_switch else f"{row.flag} {row.argument}".replace("|", "\\|")
    more = " Repeatable." if row.repeatable else ""
    return f"| `{flag}` | `{row.variable}` | `{row.shown_default}` | {', '.join(row.commands)} | {row.help}{more} |"


if __name__ == "__main__":
    print(settings_page(), end="")
