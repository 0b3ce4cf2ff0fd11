"""A row of the table of backends: how a kind is named, how one is made, and what `doctor` checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from ..contracts import TextBackend
from ..errors import UsageError


class BackendSettings(Protocol):
    """What backends need to know of the settings, each of them what it needs."""

    @property
    def backend(self) -> str: ...
    @property
    def model(self) -> tuple[str, ...]: ...
    @property
    def idle_timeout(self) -> float: ...
    @property
    def codex(self) -> str | None: ...
    @property
    def codex_home(self) -> Path: ...
    @property
    def codex_provider(self) -> str: ...
    @property
    def upstream(self) -> str | None: ...
    @property
    def base_instructions(self) -> str | None: ...
    @property
    def lanes(self) -> str: ...
    @property
    def results_as(self) -> str: ...
    @property
    def allow_item(self) -> tuple[str, ...]: ...
    @property
    def lane_limit(self) -> int: ...
    @property
    def lane_idle(self) -> float: ...
    @property
    def codex_threads(self) -> int: ...
    @property
    def codex_memory(self) -> int: ...
    @property
    def lane_bytes(self) -> int: ...
    @property
    def speed(self) -> str: ...
    @property
    def played(self) -> Path | None: ...
    @property
    def backend_key(self) -> str | None: ...
    @property
    def backend_key_file(self) -> Path | None: ...
    @property
    def chat_roles(self) -> str: ...


class Finding(Struct, frozen=True):
    """One line of `tagcall doctor`. `good` None: not checked, or worth knowing. `remedy` says what to do."""

    name: str
    good: bool | None
    said: str
    remedy: str | None = None


def as_sentence(remedy: str) -> str:
    """That of an error, which is the end of a sentence there."""
    return f"{remedy[0].upper()}{remedy[1:]}."


Check: TypeAlias = Callable[[BackendSettings], Awaitable[Sequence[Finding]]]


def takes_results_as_users_only(settings: BackendSettings) -> None:
    """For kinds whose models know no outputs of tools. Raises `UsageError`."""
    if settings.results_as == "tool":
        raise UsageError("--results-as tool is for codex", f"leave it out with --backend {settings.backend}")


def refuse_key(settings: BackendSettings) -> None:
    """For app-servers, which log in by themselves. Raises `UsageError`."""
    for flag, given in (("--backend-key", settings.backend_key), ("--backend-key-file", settings.backend_key_file)):
        if given is not None:
            raise UsageError(f"{flag} is for a Chat Completions server", "name that with --backend, or give no key")


async def no_check(_: BackendSettings) -> Sequence[Finding]:
    return ()


def no_login(_: BackendSettings) -> bool:
    return False


class BackendKind(Struct, frozen=True, kw_only=True):
    """One row. Every command loads all rows, so what only the backend takes is loaded when it is made or checked."""

    help: str
    """What answers then, as a part of a sentence."""
    address: str | None = None
    """What is written behind the kind and a colon, as `DIR` or `//HOST:PORT`; None: nothing is."""
    provider: str = "openai"
    """Who gives the models, as OpenTelemetry's conventions name it: by the form of what is spoken with them."""
    profile: str = "frontier"
    """The prompt profile of its models, by name, where the settings name none."""
    make: Callable[[BackendSettings], TextBackend]
    """Not started yet. The address stands in `settings.backend`, behind the kind. Raises `UsageError`."""
    may_want_login: Callable[[BackendSettings], bool] = no_login
    """Whether nobody has logged in yet, by a look that costs nothing."""
    next_step: str | None = None
    """What to do when one does not get ready, where what it says of that does not say so."""
    check_before: Check = no_check
    """Before one is made; a red finding ends the examination."""
    check_after: Check = no_check
    """After one has run; costs nothing."""
    has_model: bool = True
    """Whether it answers what nobody asked it before, as a trial turn does."""
    check_model: Check = no_check
    """What only its model can tell, and may cost."""
