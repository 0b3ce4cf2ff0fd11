"""`tagcall doctor`: what `serve` needs, tried for real; each red line says what to do."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable

import aiohttp

from ..advice import command
from ..backends import BackendKind, Finding, as_sentence, find_kind
from ..contracts import StoredConversation, TextBackend
from ..errors import ApiError, StoreError, TagcallError, UsageError, reason_of
from ..home import forget_habits, habits_file, read_habits, read_secret
from ..logs import in_colour
from ..quota import MAIN_LIMIT, Quota
from ..server import SET_A_KEY, base_url, bind, read_keys, stands_open, turn_options
from ..settings import Settings
from ..stores import make_store
from ..trial import USED_UP, trial_turn
from ..turn import KeyHabit, Known
from .obsidian import NO_ADDRESS, client_settings

# Seconds that a server on our port may take to say whether it is one of ours.
NEIGHBOUR_TIMEOUT = 2.0

MARKS = {True: ("ok", "32"), False: ("no", "31"), None: ("--", "33")}
NAME_THEM = "Name the ones you use with --model NAME."
# What is left to do where an error says nothing of that.
SEE_MORE = "serve --log-level debug"
STATUS = {True: "ok", False: "failed", None: "note"}


async def run_doctor(settings: Settings, *, turn: bool = True, as_json: bool = False) -> int:
    """A line a check; when all is well, what to enter in a client, and exit status 0. `turn`: ask the model too."""
    findings = []
    async for finding in examine(settings, turn=turn):
        findings.append(finding)
        if not as_json:
            show(finding)
    healthy = is_well(findings)
    url = base_url(settings.host, settings.port, settings.base_path) if settings.port else None
    if as_json:
        print(json.dumps({"healthy": healthy, "base_url": url, "checks": [_row(finding) for finding in findings]}))
    elif healthy and url is None:
        print(f"\n  Start it: {command('serve --port 0')}. {NO_ADDRESS}")
    elif healthy and url is not None:
        print(client_settings(url, settings))
    return 0 if healthy else 1


def is_well(findings: list[Finding]) -> bool:
    return all(finding.good is not False for finding in findings)


def _row(finding: Finding) -> dict[str, str | None]:
    return {
        "name": finding.name,
        "status": STATUS[finding.good],
        "said": finding.said,
        "next_step": finding.remedy,
    }


def show(finding: Finding) -> None:
    mark, colour = MARKS[finding.good]
    if in_colour(sys.stdout):
        mark = f"\x1b[{colour}m{mark}\x1b[0m"
    print(f"  {mark}  {finding.name:<10} {finding.said}", flush=True)
    if finding.remedy:
        print(f"      {'':<10} {finding.remedy}", flush=True)


def red(name: str, error: TagcallError, otherwise: str | None = None) -> Finding:
    """`otherwise` is to be done about an error that does not say so itself, as a sentence."""
    next_step = otherwise or f"{command(SEE_MORE)} says more."
    return Finding(name, False, error.fault, next_step if error.remedy is None else as_sentence(error.remedy))


async def examine(settings: Settings, *, turn: bool = True) -> AsyncGenerator[Finding, None]:
    """All checks, in the order in which a person would mend them; the model is asked when nothing else is red."""
    findings: list[Finding] = []

    def noted(finding: Finding) -> Finding:
        findings.append(finding)
        return finding

    yield noted(_key(settings))
    yield noted(await _port(settings))
    yield noted(await _store(settings))
    yield noted(_call_keys(settings))
    try:
        kind = find_kind(settings.backend)
        for finding in await kind.check_before(settings):
            yield noted(finding)
        if not is_well(findings[4:]):
            return
        backend = kind.make(settings)
    except UsageError as error:
        yield red("backend", error)
        return
    async with backend:
        ready = await _readiness(backend, kind)
        yield noted(ready)
        models, told = await _models(backend)
        for finding in told:
            if finding.said != ready.said:
                yield noted(finding)
        for finding in await kind.check_after(settings):
            yield noted(finding)
        told = _quota(backend)
        for finding in told:
            yield noted(finding)
        if is_well(findings):
            async for finding in _asked(settings, kind, backend, models, turn=turn):
                yield finding
        if not told:  # some are told with an answer only
            for finding in _quota(backend):
                yield finding


async def _asked(
    settings: Settings, kind: BackendKind, backend: TextBackend, models: list[str], *, turn: bool
) -> AsyncIterator[Finding]:
    """What the model itself says."""
    if not turn:
        yield Finding("turn", None, "not tried (--no-turn)")
    elif not kind.has_model:
        yield Finding("turn", None, "not tried: a replay has no model")
    elif models:
        tried = await trial_turn(backend, models[0], turn_options(settings))
        yield tried
        if tried.good:
            for finding in await kind.check_model(settings):
                yield finding


def _key(settings: Settings) -> Finding:
    try:
        keys = read_keys(settings)
    except UsageError as error:
        return red("key", error)
    if (said := stands_open(settings, keys)) is not None:
        return Finding("key", None, said, SET_A_KEY)
    return Finding("key", True, "only requests with a key are served" if keys else "any key is accepted")


async def _store(settings: Settings) -> Finding:
    """Writes something and takes it back."""
    kind = settings.store.partition(":")[0]
    name = f"conv_doctor{uuid.uuid4().hex}"
    try:
        async with make_store(settings.store) as store:
            await store.save_conversation(StoredConversation(name, "", 0, {}))
            await store.delete_conversation(name, "")
    except UsageError as error:
        return red("store", error)
    except StoreError as error:
        said = f"responses cannot be kept in {kind} ({error})"
        return Finding("store", False, said, "Mend that, or choose another --store: memory needs nothing.")
    if kind == "none":
        return Finding("store", True, "nothing is kept")
    return Finding(
        "store", True, "responses are kept in this process" if kind == "memory" else f"{kind} can be written"
    )


def _call_keys(settings: Settings) -> Finding:
    try:
        if settings.call_key != "off":
            read_secret(settings.call_key_secret, named=settings.names_secret)
    except UsageError as error:
        return red("call key", error)
    if settings.call_key != "auto":
        return Finding("call key", True, f"is {settings.call_key}")
    if not settings.call_key_secret.exists():
        said = f"its secret cannot be kept in {settings.call_key_secret}, so it changes at each start"
        return Finding("call key", None, said, "Name a file of yours with --call-key-secret FILE.")
    known = read_habits(habits_file(settings.call_key_secret))
    if never := _models_that(known, KeyHabit.NEVER):
        return Finding(
            "call key",
            None,
            f"was never written by {never}",
            "Calls of such a model are judged without it: one that stands in a note may be taken for a quotation. "
            f"If that is wrong, run {command('doctor --forget MODEL')}.",
        )
    writes = _models_that(known, KeyHabit.WRITES)
    return Finding(
        "call key", True, f"is written by {writes}" if writes else "no model has shown yet if it writes the key"
    )


def _models_that(known: Iterable[tuple[str, str, Known]], habit: KeyHabit) -> str:
    """The models of which this is known, for whomever."""
    return ", ".join(dict.fromkeys(model for _, model, one in known if one.habit is habit))


def forget_model(settings: Settings, model: str) -> int:
    """Forgets what is known of `model`, also in a server that runs. The exit status is 0."""
    path = habits_file(settings.call_key_secret)
    try:
        owners = forget_habits(path, model)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({reason_of(error)})", "make it writable") from None
    if owners:
        print(f"Forgot whether {model} writes the call key. Its next turns will show that.")
    else:
        print(f"tagcall has learnt nothing about {model}.")
    return 0


async def _port(settings: Settings) -> Finding:
    """Of a tagcall that has the port, those of `--also-port` are its own."""
    also = settings.also_port
    try:
        for port in (None, *also):
            bind(settings, port).close()
    except UsageError as error:
        if await _is_tagcall(settings):
            return Finding("port", True, f"a tagcall is already running on port {settings.port}")
        return red("port", error)
    free = f"{settings.host} port {settings.port} is free"
    if settings.port == 0:
        free = f"{settings.host} has a free port; it changes at each start"
    return Finding("port", True, f"{free}, and so is {', '.join(map(str, also))}" if also else free)


async def _is_tagcall(settings: Settings) -> bool:
    timeout = aiohttp.ClientTimeout(total=NEIGHBOUR_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{base_url(settings.host, settings.port)}/healthz") as answer,
        ):
            return answer.headers.get("Server") == "tagcall"
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _readiness(backend: TextBackend, kind: BackendKind) -> Finding:
    health = await backend.health()
    if (trouble := health.trouble) is not None:
        return red("backend", trouble, kind.next_step)
    return Finding("backend", True, f"answers and takes turns ({health.version or 'version unknown'})")


def _quota(backend: TextBackend) -> list[Finding]:
    """A line a limit; that of a few models is no reason to mend anything."""
    return [
        Finding("quota", _judged(quota), _said(quota), USED_UP if quota.exhausted else None)
        for quota in backend.load().quota
    ]


def _judged(quota: Quota) -> bool | None:
    return not quota.exhausted if quota.limit == MAIN_LIMIT else None


def _said(quota: Quota) -> str:
    of = "" if quota.limit == MAIN_LIMIT else f"{quota.name or quota.limit}: "
    return of + quota.in_words()


async def _models(backend: TextBackend) -> tuple[list[str], list[Finding]]:
    """All that may be asked for, and what is told of them."""
    try:
        models = await backend.models()
    except ApiError as error:
        return [], [red("models", error, NAME_THEM)]
    listed = [model.id for model in models if model.listed]
    unlisted = ", ".join(model.id for model in models if not model.listed)
    findings = [Finding("models", True, ", ".join(listed))] if listed else []
    if unlisted:
        said = f"--model names {unlisted}, and the backend does not list that"
        findings.append(Finding("models", None, said, "A turn will show if the backend has it."))
    return [model.id for model in models], findings or [Finding("models", None, "none are listed", NAME_THEM)]
