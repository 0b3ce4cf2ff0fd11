"""No regular expression of the project takes more than time in proportion to its text, whatever stands in it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict

from parser import HELD_ANSWERS, json_scan, live_call
from parser.beginnings import growing
from parser.foreign import OPENING
from parser.prose import tags
from proxy.cli.record.scrub import _known_key
from proxy.turn.filters.masking import _begins

from .support.adversaries import Adversary, adversaries
from .support.cpu_time import any_round, cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("parser", "prompts", "proxy")
# Each folder of the project's modules. To read them all takes a second or two, so nobody does who only looks for tests.
ROOMS = sorted({
    path.parent.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")
})  # fmt: skip

# Patterns that are only tried where a caller stands, or on text that is whole at both ends: never searched for.
AT_A_PLACE = {
    *("ENDS_ANYWHERE", "ENDS_ELEMENT", "ENDS_KEY", "ENDS_MEMBER", "_ATOM", "_COMMENT", "_ESCAPINGS", "_OTHER_STRINGS"),
    *("BROKEN", "PARTS", "_ARGUED", "_CLOSED", "_ENCODINGS", "_KEYED", "_NAMED", "_PAIR", "_PARTS", "growing"),
    *("_CALLED_END", "_ELEMENT_END", "_ENDS", "__init__"),  # the last one of a state of `parser.json_scan`
}

# Patterns that never meet such a text.
OUT_OF_REACH = {
    "prompts.escape._JSON_STRING[0]": "reads well-formed JSON alone",
    "proxy.schema.patterns._TOKEN[0]": "reads no pattern that is longer than `LONGEST`",
    "proxy.schema.patterns._TOKEN_IN_CLASS[0]": "reads no pattern that is longer than `LONGEST`",
}

# What functions compile from what they are given: the patterns for an example of that.
MADE: Mapping[tuple[str, str], Callable[[], list[re.Pattern[str]]]] = {
    ("parser/beginnings.py", "growing"): lambda: [
        pattern
        for source in (
            OPENING,
            *(opener.pattern for opener in HELD_ANSWERS),
            *(p.whole.pattern for p in live_call.PARTS),
        )
        for pattern in growing(source)
    ],
    ("parser/json_scan.py", "__init__"): lambda: [
        pattern
        for name, states in vars(json_scan).items()
        if name in ("_KEY", "_FIRST_KEY", "_COLON", "_VALUE", "_FIRST_VALUE", "_STRING", "_NEXT")
        for state in (states.values() if isinstance(states, dict) else [states])
        for pattern in (state.released, state.begun)
    ],
    ("parser/prose.py", "tags"): lambda: [tags(), tags(after_call=True)],
    # On what another pattern has matched as a whole.
    ("proxy/cli/eval/results.py", "lost"): lambda: [re.compile(r"[\"'<=]read_note\b")],
    ("proxy/cli/eval/results.py", "markup"): lambda: [re.compile(r"^\[(?:read_note|search)\b", re.MULTILINE)],
    # A person's own, on what they type, and for their recordings.
    ("proxy/cli/record/options.py", "_pattern"): lambda: [re.compile("sk-aaaa")],
    ("proxy/cli/record/scrub.py", "_known_key"): lambda: [_known_key("sk-aaaa"), _known_key("sk")],
    ("proxy/cli/record/scrub.py", "_known_homes"): lambda: [re.compile(r"/home/a(?=/|\b)")],
    ("proxy/turn/filters/masking.py", "_begins"): lambda: [_begins("0")],
}

# Characters: what is cubic or worse shows with few. What is linear takes 4 times as long for 4 times as many, what is
# quadratic 16 times.
LENGTHS = (24, 384, 6144)
TOO_STEEP = 9.0
# CPU seconds, below which a ratio says nothing. Nothing linear takes as long on so few characters.
FLOOR = 0.004
EXPLODED = 0.25

Use = Callable[[re.Pattern[Any], Any], object]


@cache
def _sources() -> dict[Path, ast.Module]:
    """The project's modules."""
    return {
        path: ast.parse(path.read_text("utf-8")) for room in ROOMS for path in sorted((ROOT / room).glob("*.py"))
    }  # fmt: skip


def _searched(pattern: re.Pattern[Any], text: Any) -> object:
    return sum(1 for _ in pattern.finditer(text))


def _at_start(pattern: re.Pattern[Any], text: Any) -> object:
    return pattern.match(text)


def _whole(pattern: re.Pattern[Any], text: Any) -> object:
    return pattern.fullmatch(text)


@cache
def _methods(path: Path) -> Mapping[str, set[str]]:
    """Of each name in a file, on its own or behind a dot or called: which attributes of it are asked for."""
    methods: defaultdict[str, set[str]] = defaultdict(set)
    for node in ast.walk(_sources()[path]):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name))):
                methods[name].add(node.attr)
            case _:
                pass
    return methods


def _uses(name: str, module: str) -> set[str]:
    """The methods by which the project uses the pattern with this name."""
    own = ROOT / (module.replace(".", "/") + ".py")
    read = [own] if name.startswith("_") and own in _sources() else _sources()
    return {method for path in read for method in _methods(path).get(name, ())}


def _use_of(name: str, module: str) -> Use:
    methods = _uses(name, module) & {"match", "fullmatch", "search", "sub", "subn", "finditer", "findall", "split"}
    if name in AT_A_PLACE or methods == {"match"}:
        return _at_start
    return _whole if methods == {"fullmatch"} else _searched


def _held(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value: it is one, or a table of some."""
    match value:
        case re.Pattern():
            yield value
        case tuple() | list() | set() | frozenset() if depth:
            for member in value:
                yield from _held(member, depth - 1)
        case dict() if depth:
            for member in (*value.keys(), *value.values()):
                yield from _held(member, depth - 1)
        case Struct() if depth:
            for member in asdict(value).values():
                yield from _held(member, depth - 1)
        case _:
            pass


def _calls_of_re(tree: ast.AST, function: str | None = None) -> Iterator[tuple[str | None, ast.Call]]:
    """Each use of `re` that takes a pattern, and the function in which it stands."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)) if name != "escape":
                yield inside, node
            case _:
                pass
        yield from _calls_of_re(node, inside)


def _in_functions() -> Iterator[tuple[str, Use, re.Pattern[Any]]]:
    """The patterns that are not made at import: those that are literal, and examples of the others."""
    for path, tree in _sources().items():
        place = path.relative_to(ROOT).as_posix()
        for function, call in _calls_of_re(tree):
            if function is None:
                continue
            if isinstance(call.args[0], ast.Constant):
                flags = {"re.DOTALL": re.DOTALL, "re.MULTILINE": re.MULTILINE}.get(
                    "".join(ast.unparse(keyword.value) for keyword in call.keywords), re.NOFLAG
                )
                yield f"{place}:{call.lineno}", _searched, re.compile(call.args[0].value, flags)
            else:
                use = _use_of(function, place.removesuffix(".py"))
                for number, pattern in enumerate(MADE[place, function]()):
                    yield f"{place}:{call.lineno}[{number}]", use, pattern


def _at_import() -> Iterator[tuple[str, Use, re.Pattern[Any]]]:
    for package in PACKAGES:
        for info in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not info.name.endswith("__main__"):
                module = importlib.import_module(info.name)
                for name, value in vars(module).items():
                    for number, pattern in enumerate(_held(value)):
                        yield f"{info.name}.{name}[{number}]", _use_of(name, info.name), pattern


@cache
def _patterns() -> dict[re.Pattern[Any], tuple[str, Use]]:
    """All of the project, each with its place and its use."""
    found: dict[re.Pattern[Any], tuple[str, Use]] = {}
    for place, use, pattern in _at_import():
        # A pattern that is imported is found again: what it is used for there counts as well.
        if pattern not in found or use is _searched:
            found[pattern] = (place, use)
    for place, use, pattern in _in_functions():
        found.setdefault(pattern, (place, use))
    return found


def _room_of(place: str) -> str:
    """The folder in which stands a module, by a place in it: `parser.tags.NAME[0]` or `parser/tags.py:12`."""
    if ".py:" in place:
        return place.rpartition("/")[0]
    path = place.rpartition(".")[0].replace(".", "/")
    return path if (ROOT / path).is_dir() else path.rpartition("/")[0]


def _too_steep(use: Use, pattern: re.Pattern[Any], adversary: Adversary) -> str | None:
    """How its time grows with the text, if it grows too fast."""

    def seconds(length: int, rounds: int = 1) -> float:
        text = adversary.text(length)
        read = text if isinstance(pattern.pattern, str) else text.encode()
        return cpu_seconds(lambda: use(pattern, read), rounds)

    for length in LENGTHS:
        if seconds(length) > FLOOR:
            # Again, so that nothing that happened beside it is held against it.
            taken, quarter = seconds(length, 3), seconds(length // 4, 3)
            if taken > EXPLODED or (taken > FLOOR and taken > TOO_STEEP * quarter):
                return f"{adversary!r}: {quarter * 1e3:.2f} ms, then {taken * 1e3:.2f} ms for {length} characters"
    return None


# What reads one character, or none.
_SIMPLE = {sre.ANY, sre.AT, sre.IN, sre.LITERAL, sre.NOT_LITERAL}


def _inside(value: object) -> Iterator[Any]:
    """The pairs of operation and argument in a parsed pattern, however deep."""
    match value:
        case _parser.SubPattern():
            for item in value:
                yield item
                yield from _inside(item[1])
        case tuple() | list():
            for member in value:
                yield from _inside(member)
        case _:
            pass


def _goes_back(operation: object, argument: Any) -> bool:
    """Whether it may fail behind what it has read of its own, or reads ahead."""
    match operation:
        case sre.BRANCH:
            return any(len(way) > 1 or way[0][0] not in _SIMPLE | {sre.POSSESSIVE_REPEAT} for way in argument[1])
        case sre.ASSERT | sre.ASSERT_NOT | sre.MAX_REPEAT | sre.MIN_REPEAT:
            return True
        case _:
            return False


def test_no_possessive_repetition_has_to_go_back_in_one_of_its_rounds() -> None:
    # Python before 3.11.5 goes on where such a round has failed, as if it had matched (gh-106052). Debian has 3.11.2.
    wrong = {
        place
        for pattern, (place, _) in _patterns().items()
        for operation, argument in _inside(_parser.parse(pattern.pattern, pattern.flags))
        if operation is sre.POSSESSIVE_REPEAT and any(_goes_back(*inner) for inner in _inside(argument[2]))
    }
    assert not wrong, "repeat it greedily: another way through it there is none"


@pytest.mark.growth
@pytest.mark.parametrize("room", ROOMS)
def test_time_grows_no_faster_than_the_text(room: str) -> None:
    for pattern, (place, use) in _patterns().items():
        if _room_of(place) != room or place in OUT_OF_REACH:
            continue
        for adversary in adversaries(pattern):
            for each in any_round():
                with each:
                    assert not _too_steep(use, pattern, adversary), place


@pytest.mark.growth
@pytest.mark.parametrize(
    "pattern", [r"([a-z_]*token)=\w", r"^(a+)+$", r"\b[a-z][a-z-]*://", r"a*a*b", r"<x.*?>", r"(?:\s|\n)*;"]
)
def test_what_is_not_linear_is_found(pattern: str) -> None:
    made = re.compile(pattern)
    for each in any_round():
        with each:
            assert any(_too_steep(_searched, made, adversary) for adversary in adversaries(made))


def test_every_place_that_makes_a_pattern_is_known() -> None:
    """At import each makes one that is found on its module; in functions those that are not literal are in `MADE`."""
    made = {
        (path.relative_to(ROOT).as_posix(), function)
        for path, tree in _sources().items()
        for function, call in _calls_of_re(tree)
        if function is not None and not isinstance(call.args[0], ast.Constant)
    }
    assert made == MADE.keys()
    at_import = sum(function is None for tree in _sources().values() for function, _ in _calls_of_re(tree))
    places = {place for place, _ in _patterns().values()}
    assert len(places) > 0.9 * at_import
    assert OUT_OF_REACH.keys() <= places
    assert set(map(_room_of, places)) <= set(ROOMS)
