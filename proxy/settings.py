"""Every setting once: this table makes the flags, the environment, `--help` and docs/reference/settings.md.

Where a value comes from is the business of `sources`, what its text stands for that of `setting_values`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from prompts import PROFILES

from .backends import backend_forms, backend_help, find_kind
from .errors import UsageError
from .folders import data_folder
from .ingress.dialects import DIALECT_HEADER, DIALECTS
from .setting_values import (
    ORIGIN,
    URL,
    alias,
    base_path,
    boolean,
    byte_size,
    codex_size,
    count,
    days,
    is_address,
    network,
    port_number,
    seconds,
    speed,
    user_path,
)

PREFIX = "TAGCALL_"


def default_codex_home() -> Path:
    """A folder of our own, so that the user's codex configuration does not reach the model."""
    return data_folder() / "codex"


def default_store() -> str:
    return f"sqlite:{data_folder() / 'responses.sqlite'}"


def default_call_key_secret() -> Path:
    return data_folder() / "call-key"


def _setting(
    help: str,
    *,
    default: Any,  # noqa: ANN401 -- dataclasses' own word for it
    parse: Callable[[str], object] = str,
    metavar: str | None = None,
    choices: Sequence[str] = (),
    shown: str | None = None,
    commands: Sequence[str] = ("serve", "doctor"),
    group: str | None = None,
    first: bool = False,
) -> Any:  # noqa: ANN401 -- a field specifier has the type of its field
    """`group`: with this setting a group begins. `first`: people need it before all others."""
    metadata = {
        "help": help, "parse": parse, "metavar": metavar, "choices": choices, "shown": shown, "commands": commands,
        "group": group, "first": first,
    }  # fmt: skip
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


ASKING_COMMANDS = ("serve", "doctor", "eval")
BACKEND_COMMANDS = (*ASKING_COMMANDS, "login")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one server. Field order is the order of `--help`, where each stands in the group begun last."""

    host: str = _setting(
        "Address to listen on. Anything but a loopback address needs a key.",
        default="127.0.0.1",
        commands=("serve", "doctor", "log"),
        group="Address",
        first=True,
    )
    port: int = _setting(
        "Port to listen on; 0 takes a free one.",
        default=8787,
        parse=int,
        commands=("serve", "doctor", "log"),
        first=True,
    )
    also_port: tuple[int, ...] = _setting(
        "One more port to listen on, as 11434 for hosts that look for Ollama there and nowhere else.",
        default=(),
        parse=port_number,
        metavar="PORT",
        commands=("serve",),
    )
    backend: str = _setting(
        f"What answers. {backend_help()}",
        default="auto",
        metavar="|".join(backend_forms()),
        commands=ASKING_COMMANDS,
        group="Backend",
        first=True,
    )
    codex: str | None = _setting(
        "The codex program to start as `PATH app-server`. Default: `codex` on PATH, else the one that the `codex` "
        "extra installs.",
        default=None,
        metavar="PATH",
        commands=BACKEND_COMMANDS,
    )
    codex_home: Path = _setting(
        "The private CODEX_HOME; its configuration is written by tagcall.",
        default=default_codex_home,
        parse=user_path,
        metavar="DIR",
        shown="~/.local/share/tagcall/codex",
        commands=BACKEND_COMMANDS,
    )
    codex_provider: str = _setting(
        "`tagcall` lets codex reach the model through a provider entry without retries; `openai` through codex's own, "
        "should the service ask for it.",
        default="tagcall",
        choices=("tagcall", "openai"),
        commands=BACKEND_COMMANDS,
    )
    allow_item: tuple[str, ...] = _setting(
        "A kind of item of a newer codex that is harmless and is to be passed over. An unknown one ends the turn; "
        "`tagcall doctor` names them.",
        default=(),
        metavar="KIND",
        commands=ASKING_COMMANDS,
    )
    upstream: str | None = _setting(
        "A Responses endpoint that codex itself shall use instead of OpenAI's. No login is sent to it.",
        default=None,
        metavar="URL",
        commands=BACKEND_COMMANDS,
    )
    backend_key: str | None = _setting(
        "The key that a Chat Completions server wants. Other programs see flags: use the environment, or a file.",
        default=None,
        metavar="KEY",
        commands=ASKING_COMMANDS,
    )
    backend_key_file: Path | None = _setting(
        "Read that key from FILE.",
        default=None,
        parse=user_path,
        metavar="FILE",
        commands=ASKING_COMMANDS,
    )
    chat_roles: str = _setting(
        "How a Chat Completions server is shown the conversation: `real`, as messages, or `flat`, as one text, which "
        "is tried anyway when its chat template refuses the messages.",
        default="real",
        choices=("real", "flat"),
        commands=ASKING_COMMANDS,
    )
    model: tuple[str, ...] = _setting(
        "A model to list first, also when codex does not know it.",
        default=(),
        metavar="NAME",
        commands=ASKING_COMMANDS,
        group="Models",
        first=True,
    )
    alias: tuple[tuple[str, str], ...] = _setting(
        "List MODEL as NAME as well, and answer under that name. Plugins choose the API by the name. A NAME with `*` "
        "stands for many, as `claude-*`, and is not listed.",
        default=(),
        parse=alias,
        metavar="NAME=MODEL",
        first=True,
    )
    base_instructions: str | None = _setting(
        "Replace codex's own base instructions by the text of FILE, or by nothing with `none`. Left alone by default.",
        default=None,
        metavar="FILE|none",
        commands=ASKING_COMMANDS,
    )
    lanes: str = _setting(
        "`on`: a conversation keeps its thread at codex, so that the provider reads what it holds from its cache. "
        "`off`: each request has a thread of its own.",
        default="on",
        choices=("on", "off"),
        group="Conversations",
    )
    results_as: str = _setting(
        "How the results of tools reach the model at codex: `user`, as messages of the user, or `tool`, as outputs of "
        "tools, which models rank below what a user says. Nobody has tried `tool` with an account yet.",
        default="user",
        choices=("user", "tool"),
        commands=ASKING_COMMANDS,
    )
    lane_limit: int = _setting("How many idle conversations keep their thread.", default=64, parse=int, metavar="N")
    lane_idle: float = _setting("And for how many seconds.", default=1800.0, parse=float, metavar="SECONDS")
    lane_bytes: int = _setting(
        "And how much they may hold at codex together.",
        default=64 << 20,
        parse=byte_size,
        metavar="SIZE",
        shown="64MiB",
    )
    codex_threads: int = _setting(
        "After so many threads a fresh codex takes over what is new: codex keeps each, about 1 MB, until it ends. The "
        "conversations that the old one holds go on there until nobody comes back to them.",
        default=500,
        parse=count,
        metavar="N",
    )
    codex_memory: int = _setting(
        "The same when codex takes so much memory. For a while there are two of them.",
        default=1 << 30,
        parse=codex_size,
        metavar="SIZE",
        shown="1GiB",
    )
    history: str = _setting(
        "`forgiving`: a conversation in which results are missing, merged, doubled or out of order is answered. "
        "`strict`: it is refused, as OpenAI does, for tests of clients.",
        default="forgiving",
        choices=("forgiving", "strict"),
    )
    auto_mode: str = _setting(
        "In its auto mode Claude Code asks the model which commands are dangerous, and runs the others unasked. "
        "`serve`: it is answered. `refuse`: it is not, so nothing runs unasked. `auto`: it is not with the profile "
        "`small`.",
        default="auto",
        choices=("auto", "serve", "refuse"),
    )
    store: str = _setting(
        "Where responses and conversations are kept: in an SQLite file of at most 256 MiB, in this "
        "process, nowhere, or in a Redis server (needs the `redis` extra).",
        default=default_store,
        metavar="sqlite:PATH|memory|none|redis://HOST:PORT",
        shown="sqlite:~/.local/share/tagcall/responses.sqlite",
        first=True,
    )
    keep: float = _setting(
        "And for how many days, a conversation after something was added to it last. Redis takes about 25 KiB for each "
        "request of a tool loop, and all that for as long.",
        default=30.0,
        parse=days,
        metavar="DAYS",
    )
    background_lease: float = _setting(
        "Seconds without a sign of a server after which its conversations are free for others on the same store, and "
        "its background responses are taken over by another one on the same Redis.",
        default=2.5,
        parse=seconds,
        metavar="SECONDS",
    )
    api_key: tuple[str, ...] = _setting(
        "Only requests with this key are served. Default: any key, or none.",
        default=(),
        metavar="KEY",
        commands=("serve", "doctor", "log"),
        group="Clients",
    )
    api_key_file: Path | None = _setting(
        "Read keys from FILE, one a line, as KEY or NAME=KEY, and behind it perhaps requests=N and tokens=N, which it "
        "may use in a minute. SIGHUP has it read anew.",
        default=None,
        parse=user_path,
        metavar="FILE",
        commands=("serve", "doctor", "log"),
        first=True,
    )
    allow_origin: tuple[str, ...] = _setting(
        "One more web origin that may use the server, besides Obsidian's.", default=(), metavar="ORIGIN"
    )
    trusted_proxy: tuple[str, ...] = _setting(
        "The address of a reverse proxy, or a network of them. It has no share of the connections: each address that "
        "it forwards in `X-Forwarded-For` has one, or else each key.",
        default=(),
        parse=network,
        metavar="ADDRESS",
    )
    allow_host: tuple[str, ...] = _setting(
        "One more Host name under which the server may be addressed, besides loopback ones.", default=(), metavar="HOST"
    )
    base_path: str = _setting(
        "The path under which a reverse proxy has this server, as `/llm`. What is asked without it is served as well.",
        default="",
        parse=base_path,
        metavar="PATH",
        shown="none",
        commands=("serve", "doctor", "log"),
    )
    speed: str = _setting(
        "How fast `replay:DIR` plays: without waiting, at the pace of the recording, or with a fixed time between two "
        "pieces of text.",
        default="fast",
        parse=speed,
        metavar="fast|recorded|20ms",
        group="Replay",
    )
    played: Path | None = _setting(
        "Add the name of each fixture that `replay:DIR` plays to FILE, a line each, or the line that none answers.",
        default=None,
        parse=user_path,
        metavar="FILE",
    )
    calls: str = _setting(
        "`whole`: a tool call leaves once it is complete and checked. `live`: as it is being written, on streams.",
        default="whole",
        choices=("whole", "live"),
        group="Calls",
    )
    empty_answers: str = _setting(
        "What a client gets where the model has said nothing that is left. `sentence`: one that says why. `empty`: an "
        "empty answer. Where JSON is asked for it is empty in any case.",
        default="sentence",
        choices=("sentence", "empty"),
    )
    stream_json: str = _setting(
        "How structured output is streamed. `held`: as it is written where the backend holds the model to the schema, "
        "else once it is whole and checked. `early`: always as it is written; what does not fit then fails without a "
        "second try.",
        default="held",
        choices=("held", "early"),
    )
    profile: str = _setting(
        "How much the prompt helps the model: `frontier`, or `small` for small models. `auto`: `small` for Chat "
        "Completions servers, else `frontier`.",
        default="auto",
        choices=("auto", *PROFILES),
        commands=ASKING_COMMANDS,
        first=True,
    )
    call_key: str = _setting(
        "The key that the model is told to write into each call. `auto`: a call with it is meant; one without it is "
        "asked for once more, unless the model is known never to write it. `required`: without it there is no call. "
        "`off`: there is no key.",
        default="auto",
        choices=("auto", "required", "off"),
        commands=ASKING_COMMANDS,
    )
    hold_calls: str = _setting(
        "`auto`: where `tool_choice` demands a call, the backend is asked to hold its model to the tools' schemas. "
        "`all`: llama.cpp's server is asked to hold it to them wherever it calls a tool. `off`: never.",
        default="auto",
        choices=("auto", "all", "off"),
        commands=ASKING_COMMANDS,
    )
    call_key_secret: Path = _setting(
        "The file with the secret that call keys are made from; made when it is not there. Replicas share one. What "
        "models make of the key is noted beside it.",
        default=default_call_key_secret,
        parse=user_path,
        metavar="FILE",
        shown="~/.local/share/tagcall/call-key",
        commands=ASKING_COMMANDS,
    )
    reasoning_content: bool = _setting(
        "Send the model's reasoning summary in Chat Completions too, as `reasoning_content`, which some clients show.",
        default=False,
        parse=boolean,
        group="APIs",
    )
    dialect: str = _setting(
        f"How POST /v1/responses answers a request that does not say it with `{DIALECT_HEADER}`: "
        f"{', or '.join(DIALECTS.values())}.",
        default=next(iter(DIALECTS)),
        choices=tuple(DIALECTS),
    )
    loop_guard: bool = _setting(
        "In the tokligence dialect, warn the model when three results of a tool in a row are the same, and refuse to "
        "go on when five are.",
        default=False,
        parse=boolean,
    )
    idle_timeout: float = _setting(
        "Seconds without any sign of life from the backend after which a turn is ended.",
        default=300.0,
        parse=float,
        metavar="SECONDS",
        commands=ASKING_COMMANDS,
        group="Limits",
    )
    max_body: int = _setting(
        "The largest request body that is read.", default=16 << 20, parse=byte_size, metavar="SIZE", shown="16MiB"
    )
    max_answer: int = _setting(
        "The longest answer that is read: its text and thoughts together, calls included. What is longer is cut, and "
        "ends as `incomplete`.",
        default=16 << 20,
        parse=byte_size,
        metavar="SIZE",
        shown="16MiB",
        commands=ASKING_COMMANDS,
    )
    inspect: bool = _setting(
        "Keep the words of the last turns in memory, for the page at `/`. Without it that has names and numbers alone.",
        default=False,
        parse=boolean,
        group="Page and log",
        first=True,
    )
    inspect_key: str | None = _setting(
        "A key that opens the page and shows on it what all keys asked; any other shows what was asked with it.",
        default=None,
        metavar="KEY",
        commands=("serve", "log"),
    )
    inspect_turns: int = _setting("How many turns are shown there.", default=100, parse=int, metavar="N")
    inspect_bytes: int = _setting(
        "And how much memory their words may take.", default=64 << 20, parse=byte_size, metavar="SIZE", shown="64MiB"
    )
    log_level: str = _setting(
        "How much is logged, to standard error. On a terminal `info` is a line a turn, and `debug` all the rest.",
        default="info",
        choices=("debug", "info", "warning", "error"),
        commands=ASKING_COMMANDS,
        first=True,
    )
    log_format: str = _setting("How it is logged.", default="console", choices=("console", "json"))

    @property
    def names_secret(self) -> bool:
        """Whether the owner says where the secret of the call keys is."""
        return self.call_key_secret != default_call_key_secret()

    @property
    def profile_name(self) -> str:
        """What `--profile` comes to. Raises `UsageError` for a backend that is none."""
        return find_kind(self.backend).profile if self.profile == "auto" else self.profile

    @property
    def judges_commands(self) -> bool:
        """What `--auto-mode` comes to. Raises `UsageError` as `profile_name` does."""
        return self.auto_mode == "serve" or (self.auto_mode == "auto" and self.profile_name != "small")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} is not a port: choose one from 0 to 65535.")
        if not 0 < self.idle_timeout < float("inf"):
            raise UsageError("--idle-timeout must be more than 0 seconds.")
        if self.lane_limit < 1 or not self.lane_idle > 0 or self.lane_bytes < 1:
            raise UsageError("--lane-limit, --lane-idle and --lane-bytes must be more than 0: --lanes off keeps none.")
        if self.inspect_turns < 1 or self.inspect_bytes < 1:
            raise UsageError("--inspect-turns and --inspect-bytes must be more than 0: no --inspect keeps no words.")
        if self.max_answer < 1:
            raise UsageError("--max-answer must leave room for an answer: write for instance 16MiB.")
        if self.max_body < 1:
            raise UsageError("--max-body must leave room for a request: write for instance 16MiB.")
        if self.upstream is not None and not (URL.match(self.upstream) and is_address(self.upstream)):
            raise UsageError(f"--upstream {self.upstream} is not a URL: write for instance http://127.0.0.1:8000/v1.")
        for origin in self.allow_origin:
            if not ORIGIN.fullmatch(origin):
                raise UsageError(
                    f"--allow-origin {origin} is not an origin: write for instance https://notes.example, "
                    "one flag for each."
                )
        for flag, words in (
            ("--host", [self.host]),
            ("--api-key", self.api_key),
            ("--inspect-key", [self.inspect_key] if self.inspect_key is not None else []),
            ("--backend-key", [self.backend_key] if self.backend_key is not None else []),
            ("--model", self.model),
            ("--alias", [word for pair in self.alias for word in pair]),
            ("--allow-host", self.allow_host),
            ("--allow-item", self.allow_item),
        ):
            if not all(word.strip() and word.isprintable() for word in words):
                raise UsageError(f"{flag} must not be empty, nor have a character that cannot be printed.")
        names = [name for name, _ in self.alias]
        if twice := {name for name in names if names.count(name) > 1}:
            raise UsageError(f"--alias {twice.pop()} is given twice: one name stands for one model.")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table, as help and docs show it."""

    name: str
    help: str
    shown_default: str
    metavar: str | None
    choices: tuple[str, ...]
    parse: Callable[[str], object]
    repeatable: bool
    is_switch: bool
    commands: tuple[str, ...]
    group: str
    first: bool

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def argument(self) -> str:
        """What stands for the value in help and docs."""
        return self.metavar or "|".join(self.choices) or self.name.rpartition("_")[2].upper()

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def value(self, text: str, source: str) -> object:
        """The value that `text` stands for; `source` is named when it stands for none."""
        if self.choices and text not in self.choices:
            raise UsageError(f"{source} must be one of {', '.join(self.choices)}, not '{text}'.")
        if self.parse is user_path and not text.strip():  # which would be the folder that one happens to stand in
            raise UsageError(f"{source} must not be empty.")
        try:
            return self.parse(text)
        except ValueError as error:
            if self.parse in {int, float}:
                raise UsageError(f"{source} must be a number, not '{text}'.") from None
            raise UsageError(f"{source}: {error}.") from None


def _rows() -> tuple[Setting, ...]:
    rows: list[Setting] = []
    group = ""
    for item in fields(Settings):
        default = item.default
        group = item.metadata["group"] or group
        shown = item.metadata["shown"] or (
            "none" if default in (None, ()) else "off" if default is False else f"{default:g}"
            if isinstance(default, float) else str(default)
        )  # fmt: skip
        rows.append(
            Setting(
                name=item.name,
                help=item.metadata["help"],
                shown_default=shown,
                metavar=item.metadata["metavar"],
                choices=tuple(item.metadata["choices"]),
                parse=item.metadata["parse"],
                repeatable=default == (),
                is_switch=default is False,
                commands=tuple(item.metadata["commands"]),
                group=group,
                first=item.metadata["first"],
            )
        )
    return tuple(rows)


SETTINGS = _rows()


# The group of those that people need first, and what stands below it.
FIRST_GROUP = "Needed first"
_VARIABLES = "Each flag is an environment variable, too: --log-level is TAGCALL_LOG_LEVEL. Defaults stand in brackets."


def add_flags(parser: argparse.ArgumentParser, command: str) -> None:
    """The flags of `command` in their groups, none of them with a default: what is not given comes from elsewhere."""
    rows = [row for row in SETTINGS if command in row.commands]
    first = parser.add_argument_group(FIRST_GROUP, _VARIABLES)
    first.add_argument(
        "--config",
        metavar="FILE|none",
        help="Read settings from FILE, or from none. [~/.config/tagcall/tagcall.toml, where it is there]",
    )
    groups = {row.group: parser.add_argument_group(row.group) for row in rows if not row.first}
    for row in rows:
        more = " Repeatable." if row.repeatable else ""
        text = f"{row.help}{more} [{row.shown_default}]".replace("%", "%%")
        group = first if row.first else groups[row.group]
        if row.is_switch:
            group.add_argument(row.flag, action="store_const", const="true", default=None, help=text)
        else:
            action = "append" if row.repeatable else "store"
            group.add_argument(row.flag, action=action, default=None, metavar=row.argument, help=text)
