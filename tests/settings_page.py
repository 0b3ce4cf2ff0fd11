"""`make docs`: docs/reference/settings.md, from the table of settings."""

from __future__ import annotations

from itertools import groupby

from proxy.settings import SETTINGS, Setting

_INTRODUCTION = """\
# Settings

Made from the table in `proxy/settings.py`. A flag wins over its environment variable, that over `tagcall.toml`, that
over the default. `tagcall settings` prints what is in force, and where each came from. `setup`, `settings`, `record`
and, behind `--`, `service install` take what `serve` takes.

A repeatable flag's variable takes several values with commas between them. A switch is `1` or `0`, `true` or `false`,
`yes` or `no`, `on` or `off`, in any case of letters; anything else is an error. So is a name that is nearly one of
these; any other that begins with `TAGCALL_` is told and ignored. Kubernetes sets such variables by itself in the pods
beside a Service named `tagcall` (`TAGCALL_PORT=tcp://...`): these are passed over, and `enableServiceLinks: false` in
the pod's specification keeps them away.

`tagcall.toml` has the same names, in no table, and lists for what is repeatable. It is read from `~/.config/tagcall`
(or `$XDG_CONFIG_HOME/tagcall`; on macOS and Windows from the system's own folder for settings), or from where
`--config FILE` says. `--config none` reads none:

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
