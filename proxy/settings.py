"""Every setting once: this table makes the flags, the environment, `--help` and docs/reference/settings.md.

`sources` finds the values, and `setting_values` reads their text.
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
    size_text,
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
        "Address to listen on. Any address but a loopback one needs a key.",
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
        "One more port to listen on. Some hosts look for Ollama on 11434 and nowhere else.",
        default=(),
        parse=port_number,
        metavar="PORT",
    )
    backend: str = _setting(
        f"Where answers come from. {backend_help()}",
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
        "The private CODEX_HOME. tagcall writes its configuration.",
        default=default_codex_home,
        parse=user_path,
        metavar="DIR",
        shown="~/.local/share/tagcall/codex",
        commands=BACKEND_COMMANDS,
    )
    codex_provider: str = _setting(
        "`tagcall`: codex reaches the model through a provider entry without retries. `openai`: codex uses its own "
        "entry. Choose that if the service asks for it.",
        default="tagcall",
        choices=("tagcall", "openai"),
        commands=BACKEND_COMMANDS,
    )
    allow_item: tuple[str, ...] = _setting(
        "A kind of codex item that is harmless; tagcall skips it. An unknown kind ends the turn. `tagcall doctor` "
        "names the unknown kinds.",
        default=(),
        metavar="KIND",
        commands=ASKING_COMMANDS,
    )
    upstream: str | None = _setting(
        "A Responses endpoint that codex uses instead of OpenAI's. It gets no login.",
        default=None,
        metavar="URL",
        commands=BACKEND_COMMANDS,
    )
    backend_key: str | None = _setting(
        "The key for a Chat Completions server. Other programs can see flags: prefer the variable, or a file.",
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
        "How a Chat Completions server gets the conversation. `real`: as messages. `flat`: as one text. If the "
        "server's chat template refuses the messages, tagcall sends one text anyway.",
        default="real",
        choices=("real", "flat"),
        commands=ASKING_COMMANDS,
    )
    model: tuple[str, ...] = _setting(
        "A model to list first, even if codex does not know it.",
        default=(),
        metavar="NAME",
        commands=ASKING_COMMANDS,
        group="Models",
        first=True,
    )
    alias: tuple[tuple[str, str], ...] = _setting(
        "List MODEL as NAME, too, and answer under that name. Plugins choose the API by the name. A NAME with `*`, "
        "such as `claude-*`, covers many names and is not listed.",
        default=(),
        parse=alias,
        metavar="NAME=MODEL",
        first=True,
    )
    base_instructions: str | None = _setting(
        "Replace codex's own base instructions with the text of FILE. `none` removes them. tagcall leaves them alone "
        "by default.",
        default=None,
        metavar="FILE|none",
        commands=ASKING_COMMANDS,
    )
    lanes: str = _setting(
        "`on`: a conversation keeps its thread at codex, so the provider reads the earlier messages from its cache. "
        "`off`: each request has a thread of its own.",
        default="on",
        choices=("on", "off"),
        group="Conversations",
    )
    results_as: str = _setting(
        "How codex's model gets the results of tools. `user`: as messages of the user. `tool`: as outputs of tools, "
        "which models rank below the user's words. Nobody has tried `tool` with an account yet.",
        default="user",
        choices=("user", "tool"),
        commands=ASKING_COMMANDS,
    )
    lane_limit: int = _setting("How many idle conversations keep their thread.", default=64, parse=int, metavar="N")
    lane_idle: float = _setting(
        "For how many seconds an idle conversation keeps its thread.", default=1800.0, parse=float, metavar="SECONDS"
    )
    lane_bytes: int = _setting(
        "How much the idle conversations may hold at codex together.",
        default=64 << 20,
        parse=byte_size,
        metavar="SIZE",
    )
    codex_threads: int = _setting(
        "After this many threads, a fresh codex takes new conversations. codex keeps each thread until it ends, "
        "about 1 MB. Conversations of the old codex go on there until nobody returns to them.",
        default=500,
        parse=count,
        metavar="N",
    )
    codex_memory: int = _setting(
        "A fresh codex also starts when the old one takes this much memory. For a while there are two.",
        default=1 << 30,
        parse=codex_size,
        metavar="SIZE",
    )
    history: str = _setting(
        "How to treat a conversation whose tool results are missing, merged, doubled or out of order. `forgiving`: "
        "answer it. `strict`: refuse it, as OpenAI does; use this to test clients.",
        default="forgiving",
        choices=("forgiving", "strict"),
    )
    auto_mode: str = _setting(
        "In its auto mode, Claude Code asks the model which commands are dangerous and runs the others without "
        "asking you. `serve`: the model answers. `refuse`: it does not, so nothing runs unasked. `auto`: refuse with "
        "the profile `small`, else serve.",
        default="auto",
        choices=("auto", "serve", "refuse"),
    )
    store: str = _setting(
        "Where responses and conversations are kept: in an SQLite file of at most 256 MiB, in this process, nowhere, "
        "or in a Redis server. Redis needs the `redis` extra.",
        default=default_store,
        metavar="sqlite:PATH|memory|none|redis://HOST:PORT",
        shown="sqlite:~/.local/share/tagcall/responses.sqlite",
        first=True,
    )
    keep: float = _setting(
        "For how many days responses and conversations are kept. A conversation's time begins again when something is "
        "added. Redis takes about 25 KiB for each request of a tool loop.",
        default=30.0,
        parse=days,
        metavar="DAYS",
    )
    background_lease: float = _setting(
        "After so many seconds without a sign of a server, others take over. Servers on the same store may use its "
        "conversations. Servers on the same Redis continue its background responses.",
        default=2.5,
        parse=seconds,
        metavar="SECONDS",
    )
    api_key: tuple[str, ...] = _setting(
        "Serve only requests with this key. Default: any key, or none.",
        default=(),
        metavar="KEY",
        commands=("serve", "doctor", "log"),
        group="Clients",
    )
    api_key_file: Path | None = _setting(
        "Read keys from FILE, one a line: KEY or NAME=KEY. Add requests=N or tokens=N for limits per minute. On "
        "SIGHUP, tagcall reads the file again.",
        default=None,
        parse=user_path,
        metavar="FILE",
        commands=("serve", "doctor", "log"),
        first=True,
    )
    allow_origin: tuple[str, ...] = _setting(
        "One more web origin that may use the server. Obsidian's origins always may.", default=(), metavar="ORIGIN"
    )
    trusted_proxy: tuple[str, ...] = _setting(
        "The address of a reverse proxy, or a network of proxies. tagcall then shares its connections among the "
        "addresses in `X-Forwarded-For`, or among the keys.",
        default=(),
        parse=network,
        metavar="ADDRESS",
    )
    allow_host: tuple[str, ...] = _setting(
        "One more Host name under which clients may reach the server. Loopback names always work.",
        default=(),
        metavar="HOST",
    )
    base_path: str = _setting(
        "The path of this server behind a reverse proxy, such as `/llm`. Requests without it are served, too.",
        default="",
        parse=base_path,
        metavar="PATH",
        commands=("serve", "doctor", "log"),
    )
    speed: str = _setting(
        "How fast `replay:DIR` plays: without waiting, at the pace of the recording, or with a fixed time between "
        "two pieces of text.",
        default="fast",
        parse=speed,
        metavar="fast|recorded|20ms",
        group="Replay",
    )
    played: Path | None = _setting(
        "For each turn that `replay:DIR` plays, add a line to FILE: the name of the fixture, or a line that says "
        "none answers.",
        default=None,
        parse=user_path,
        metavar="FILE",
    )
    calls: str = _setting(
        "`whole`: a tool call leaves once it is complete and checked. `live`: on streams, it leaves while the model "
        "writes it.",
        default="whole",
        choices=("whole", "live"),
        group="Calls",
    )
    empty_answers: str = _setting(
        "What a client gets if nothing is left of the model's answer. `sentence`: a sentence that says why. `empty`: "
        "an empty answer. A request for JSON always gets an empty answer.",
        default="sentence",
        choices=("sentence", "empty"),
    )
    stream_json: str = _setting(
        "How structured output is streamed. `held`: as the model writes it if the backend enforces the schema; "
        "otherwise once it is whole and checked. `early`: always as the model writes it. An answer that does not fit "
        "then fails without a second try.",
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
        "The key that the model writes into each call. `auto`: a call with the key is meant. For a call without it, "
        "tagcall asks once more, unless it knows that this model never writes the key. `required`: only a call with "
        "the key counts. `off`: there is no key.",
        default="auto",
        choices=("auto", "required", "off"),
        commands=ASKING_COMMANDS,
    )
    hold_calls: str = _setting(
        "Whether the backend makes the model's calls fit the tools' schemas. `auto`: if `tool_choice` demands a "
        "call. `all`: llama.cpp's server does so for every call. `off`: never.",
        default="auto",
        choices=("auto", "all", "off"),
        commands=ASKING_COMMANDS,
    )
    call_key_secret: Path = _setting(
        "The file with the secret from which call keys are made. tagcall makes it if it is missing. Replicas share "
        "one. tagcall notes beside it which models write the key.",
        default=default_call_key_secret,
        parse=user_path,
        metavar="FILE",
        shown="~/.local/share/tagcall/call-key",
        commands=ASKING_COMMANDS,
    )
    reasoning_content: bool = _setting(
        "Send the model's reasoning summary in Chat Completions, too, as `reasoning_content`. Some clients show it.",
        default=False,
        parse=boolean,
        group="APIs",
    )
    dialect: str = _setting(
        f"How POST /v1/responses answers a request without the header `{DIALECT_HEADER}`: "
        f"{', or '.join(DIALECTS.values())}.",
        default=next(iter(DIALECTS)),
        choices=tuple(DIALECTS),
    )
    loop_guard: bool = _setting(
        "In the tokligence dialect, warn the model after three equal results of a tool in a row, and end the loop "
        "after five.",
        default=False,
        parse=boolean,
    )
    idle_timeout: float = _setting(
        "End a turn after this many seconds without a sign of life from the backend.",
        default=300.0,
        parse=float,
        metavar="SECONDS",
        commands=ASKING_COMMANDS,
        group="Limits",
    )
    max_body: int = _setting(
        "The largest request body that the server accepts.",
        default=16 << 20,
        parse=byte_size,
        metavar="SIZE",
    )
    max_answer: int = _setting(
        "The longest answer that is read: text, thoughts and calls together. A longer one is cut and ends as "
        "`incomplete`.",
        default=16 << 20,
        parse=byte_size,
        metavar="SIZE",
        commands=ASKING_COMMANDS,
    )
    inspect: bool = _setting(
        "Keep the words of the last turns in memory, for the page at `/`. Otherwise the page shows only names and "
        "numbers.",
        default=False,
        parse=boolean,
        group="Page and log",
        first=True,
    )
    inspect_key: str | None = _setting(
        "A key that opens the page and shows all turns there. Any other key shows only its own turns.",
        default=None,
        metavar="KEY",
        commands=("serve", "doctor", "log"),
    )
    inspect_turns: int = _setting("How many turns the page shows.", default=100, parse=int, metavar="N")
    inspect_bytes: int = _setting(
        "How much memory the words of these turns may take.",
        default=64 << 20,
        parse=byte_size,
        metavar="SIZE",
    )
    log_level: str = _setting(
        "How much to log, to standard error. On a terminal, `info` logs one line a turn, and `debug` everything else.",
        default="info",
        choices=("debug", "info", "warning", "error"),
        commands=ASKING_COMMANDS,
        first=True,
    )
    log_format: str = _setting("The form of the log.", default="console", choices=("console", "json"))

    @property
    def names_secret(self) -> bool:
        """Whether the owner says where the secret of the call keys is."""
        return self.call_key_secret != default_call_key_secret()

    @property
    def profile_name(self) -> str:
        """The profile that `--profile` chooses. Raises `UsageError` for an unknown backend."""
        return find_kind(self.backend).profile if self.profile == "auto" else self.profile

    @property
    def judges_commands(self) -> bool:
        """Whether the model judges commands, by `--auto-mode`. Raises `UsageError` like `profile_name`."""
        return self.auto_mode == "serve" or (self.auto_mode == "auto" and self.profile_name != "small")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} is not a port: choose one from 0 to 65535.")
        if not 0 < self.idle_timeout < float("inf"):
            raise UsageError("--idle-timeout must be more than 0 seconds.")
        if self.lane_limit < 1 or not self.lane_idle > 0 or self.lane_bytes < 1:
            raise UsageError(
                "--lane-limit, --lane-idle and --lane-bytes must be more than 0: write --lanes off to keep no threads."
            )
        if self.inspect_turns < 1 or self.inspect_bytes < 1:
            raise UsageError(
                "--inspect-turns and --inspect-bytes must be more than 0: leave out --inspect to keep no words."
            )
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
                raise UsageError(f"{flag} must not be empty, and every character must be printable.")
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
        """The placeholder of the value in help and docs."""
        return self.metavar or "|".join(self.choices) or self.name.rpartition("_")[2].upper()

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def value(self, text: str, source: str) -> object:
        """`text` as a value. Raises `UsageError`, which names `source`."""
        if self.choices and text not in self.choices:
            raise UsageError(f"{source} must be one of {', '.join(self.choices)}, not '{text}'.")
        if self.parse in {str, user_path} and not text.strip():  # "" would be the folder that one happens to stand in
            raise UsageError(f"{source} must not be empty.")
        try:
            return self.parse(text)
        except ValueError as error:
            if self.parse in {int, float}:
                raise UsageError(f"{source} must be a number, not '{text}'.") from None
            raise UsageError(f"{source}: {error}.") from None


def written(value: Any, parse: Callable[[str], object]) -> str:  # noqa: ANN401 -- whatever a field holds
    """A value as a person writes it. `parse` is what reads it."""
    match value:
        case None | () | "":
            return "none"
        case bool():
            return "on" if value else "off"
        case tuple():
            return ", ".join("=".join(one) if isinstance(one, tuple) else str(one) for one in value)
        case float():
            return f"{value:g}"
        case int() if parse in {byte_size, codex_size}:
            return size_text(value)
        case _:
            return str(value)


def _rows() -> tuple[Setting, ...]:
    rows: list[Setting] = []
    group = ""
    for item in fields(Settings):
        default = item.default
        group = item.metadata["group"] or group
        parse = item.metadata["parse"]
        rows.append(
            Setting(
                name=item.name,
                help=item.metadata["help"],
                shown_default=item.metadata["shown"] or written(default, parse),
                metavar=item.metadata["metavar"],
                choices=tuple(item.metadata["choices"]),
                parse=parse,
                repeatable=default == (),
                is_switch=default is False,
                commands=tuple(item.metadata["commands"]),
                group=group,
                first=item.metadata["first"],
            )
        )
    return tuple(rows)


SETTINGS = _rows()


# The group of the flags that most people use, and what stands below it.
FIRST_GROUP = "Most used"
_VARIABLES = "Each flag is an environment variable, too: --log-level is TAGCALL_LOG_LEVEL. Defaults stand in brackets."


def add_flags(parser: argparse.ArgumentParser, command: str) -> None:
    """The flags of `command` in their groups, none of them with a default: what is not given comes from elsewhere."""
    rows = [row for row in SETTINGS if command in row.commands]
    first = parser.add_argument_group(FIRST_GROUP, _VARIABLES)
    first.add_argument(
        "--config",
        metavar="FILE|none",
        help="Read settings from FILE, or from no file. [~/.config/tagcall/tagcall.toml, if it exists]",
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
