"""What the text of a setting means. `ValueError` says why it means nothing, and what to write instead."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from .errors import UsageError, reason_of

URL = re.compile(r"https?://[^\s/]+")
SPEED = re.compile(r"fast|recorded|\d+ms")
PATH_NAME = re.compile(r"[\w.~-]+", re.ASCII)
# `file://` is what Electron's pages have that are files; a browser's have `null`.
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*]+/?|file://")

# The largest first of each kind, as `size_text` looks for one.
UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "m": 1_000_000, "k": 1_000, "": 1}
_UNITS_READ = {unit.lower(): size for unit, size in UNITS.items()}
# What a codex takes that has done something.
CODEX_BYTES = 128 << 20
# A century, nearly.
MOST_DAYS = 36_500
BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def boolean(text: str) -> bool:
    """What a switch says in a variable or a file, in any case of letters. A switch that protects is not guessed at."""
    try:
        return BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"'{text}' is neither on nor off: write 1 or 0, true or false, yes or no, on or off") from None


def byte_size(text: str) -> int:
    """`16MiB`, `500k` or a plain number of bytes."""
    number = text.rstrip("KkMmGgIiBb")
    unit = text[len(number) :].lower()
    unit = unit if unit in _UNITS_READ else unit.removesuffix("b")
    if not number.isdecimal() or unit not in _UNITS_READ:
        raise ValueError(f"'{text}' is not a size: write for instance 16MiB")
    return int(number) * _UNITS_READ[unit]


def size_text(size: int) -> str:
    """A text of which `byte_size` makes `size`, as short as can be: `16MiB`, `500k`."""
    # Zero is a multiple of every unit.
    return next(f"{size // many}{unit}" for unit, many in UNITS.items() if max(size, 1) % many == 0)


def codex_size(text: str) -> int:
    """A size that a codex has room in."""
    size = byte_size(text)
    if size < CODEX_BYTES:
        raise ValueError(f"'{text}' is too little, because codex begins with 80 MB: write for instance 1GiB")
    return size


def count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(f"'{text}' is not a count: write 1 or more")
    return int(text)


def seconds(text: str) -> float:
    """A time that is over some day."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"'{text}' is not a number of seconds: write for instance 2.5")
    return number


def days(text: str) -> float:
    """A number of days, or a part of one, that a store can count."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MOST_DAYS:
        raise ValueError(f"'{text}' is not a number of days: write for instance 30, or 0.5")
    return number


def speed(text: str) -> str:
    """`fast`, `recorded` or milliseconds, as `20ms`; the same text again."""
    if not SPEED.fullmatch(text):
        raise ValueError(f"'{text}' is not a speed: write fast, recorded or for instance 20ms")
    return text


def base_path(text: str) -> str:
    """`/llm` for `llm`, `/llm` and `/llm/`; "" for a slash alone."""
    names = [name for name in text.strip().split("/") if name]
    if not all(PATH_NAME.fullmatch(name) and name.strip(".") for name in names):
        raise ValueError(f"'{text}' is not a path: write for instance /llm")
    if names and names[-1] == "v1":
        raise ValueError(f"'{text}' ends with /v1, which tagcall adds: leave that out")
    return "".join(f"/{name}" for name in names)


def alias(text: str) -> tuple[str, str]:
    """`NAME=MODEL` as a pair."""
    name, _, model = (part.strip() for part in text.partition("="))
    if not (name and model):
        raise ValueError(f"'{text}' is not an alias: write for instance notes=gpt-5.5")
    return name, model


def is_address(url: str) -> bool:
    """Whether the host of `url` can be one, and its port too."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        return parts.port != 0 and bool(host) and not re.search(rb"\s", host)
    except ValueError:
        return False


def network(text: str) -> str:
    """An address, or a network of them."""
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError:
        raise ValueError(f"'{text}' is not an address: write for instance 127.0.0.1 or 10.0.0.0/8") from None


def port_number(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) <= 65535):
        raise ValueError(f"'{text}' is not a port: write a number from 1 to 65535")
    return int(text)


def user_path(text: str) -> Path:
    """A path that may begin with `~`. Raises `UsageError`."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        if (home := Path(text).parts[0]) != "~":
            raise UsageError(f"{text}: no user has the home {home}: write the whole path.") from None
        raise UsageError(f"{text} needs your home folder, and there is none: set HOME.") from None


def text_of_file(file: Path, subject: str, remedy: str) -> str:
    """What stands in the file that a setting names, without a mark of its encoding. Raises `UsageError`."""
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{subject} cannot be read ({reason_of(error)})", remedy) from None
