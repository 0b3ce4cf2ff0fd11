"""Where settings come from: a flag wins over its variable, that over `tagcall.toml`, that over the default.

Each is checked against the table in `settings`. A name that is nearly a setting's is an error, because a typo must not
leave open what its owner meant to protect: `TAGCALL_API_KEYS=...`, `api-keys = [...]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from .advice import command
from .errors import UsageError
from .folders import config_folder, moved
from .near_names import near_name
from .setting_values import text_of_file, user_path
from .settings import PREFIX, SETTINGS, Setting, Settings

DEFAULT = "default"
# What `--config` says for no file at all.
NO_FILE = "none"

# The tests' and the Makefile's own variables, and what Kubernetes gives a pod where a Service is named tagcall.
_NOT_OURS = re.compile(
    r"TAGCALL_(TEST_\w+|BY_MAKE|SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_KUBERNETES_PORT = re.compile(r"(tcp|udp|sctp)://\S+")


class Sources(Struct, frozen=True):
    """`origins` by the name of the setting: a flag, a variable, a file's path, or `DEFAULT`."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]


def load(flags: Mapping[str, str | list[str] | None], environment: Mapping[str, str]) -> Settings:
    """Settings from parsed flags and the environment, without any file. Raises `UsageError`."""
    return gather(flags, environment).settings


def gather(
    flags: Mapping[str, str | list[str] | None],
    environment: Mapping[str, str],
    file: Path | None = None,
) -> Sources:
    """Raises `UsageError`, which names the source that must change."""
    written = {} if file is None else _read_file(file)
    warnings = (*_strangers(environment), *filter(None, [moved()]))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for row in SETTINGS:
        texts, source = _from_flag(row, flags), row.flag
        if texts is None:
            texts, source = _from_variable(row, environment), row.variable
        if texts is None and row.name in written:
            source = f"{row.name} in {file}"
            texts = _texts(row, written[row.name], source)
        origins[row.name] = DEFAULT if texts is None else source
        if texts is not None:
            read = tuple(row.value(text, source) for text in texts)
            values[row.name] = read if row.repeatable else read[0]
    return Sources(Settings(**values), origins, warnings)


def config_file(chosen: str | None) -> Path | None:
    """The file to read: what `--config` names, else the one in the configuration folder, if it is there."""
    if chosen == NO_FILE:
        return None
    if chosen is not None:
        return user_path(chosen)
    try:
        usual = config_folder() / "tagcall.toml"
    except UsageError:  # the user has no home
        return None
    return usual if usual.exists() else None


def _from_flag(row: Setting, flags: Mapping[str, str | list[str] | None]) -> list[str] | None:
    given = flags.get(row.name)
    return [given] if isinstance(given, str) else given


def _from_variable(row: Setting, environment: Mapping[str, str]) -> list[str] | None:
    text = environment.get(row.variable)
    if not text or (row.name == "port" and _KUBERNETES_PORT.fullmatch(text)):
        return None
    return [part.strip() for part in text.split(",")] if row.repeatable else [text]


def _read_file(file: Path) -> Mapping[str, object]:
    """The values in `file`, by the names of the table. Raises `UsageError`."""
    import tomllib  # noqa: PLC0415 -- most have no such file

    text = text_of_file(file, str(file), "name another file with --config, or none with --config none")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}.") from None
    known = {row.name for row in SETTINGS}
    written: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            raise UsageError(f"[{key}] in {file} is a table: write settings at the top of the file, in no table.")
        name = key.replace("-", "_")
        if name not in known:
            near = near_name(name, known, 0.6)
            step = f"did you mean {near}?" if near else f"{command('settings')} lists them."
            raise UsageError(f"{key} in {file} is not a setting: {step}")
        if name in written:
            raise UsageError(f"{key} in {file} is given twice", "leave one of them")
        written[name] = value
    return written


def _texts(row: Setting, value: object, source: str) -> list[str]:
    """`value` as the texts that a command line would have."""
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not row.repeatable:
        raise UsageError(f"{source} takes one value, not a list.")
    for one in values:
        if not isinstance(one, str | int | float):
            raise UsageError(f"{source} must be text, a number, true or false.")
        if isinstance(one, bool) is not row.is_switch and not (row.is_switch and isinstance(one, str)):
            raise UsageError(f"{source} must be {'true or false' if row.is_switch else 'a value, not a switch'}.")
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def _strangers(environment: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that looks like ours and is not. Raises `UsageError` for a slip of the pen."""
    known = {row.variable for row in SETTINGS}
    for name in sorted(environment):
        if not name.upper().startswith(PREFIX) or name in known or _NOT_OURS.fullmatch(name):
            continue
        if near := near_name(name.upper(), known, 0.85):
            raise UsageError(f"{name} is not a setting: did you mean {near}?")
        yield f"{name} is not a setting and has no effect."
