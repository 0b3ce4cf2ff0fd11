"""What is wrong with what a person typed: one sentence, and JSON where all else is."""

from __future__ import annotations

import json
import re
from argparse import _AppendAction, _SubParsersAction
from collections.abc import Iterator

import pytest

from proxy.cli import main
from proxy.cli.command_line import wants_json
from proxy.cli.commands import build_parser
from proxy.logs import tell_as
from proxy.settings import SETTINGS

WRONG = [
    # What was typed, and how the sentence begins and ends.
    ("--port 1 serve", "Begin with a command", "lists all commands."),
    ("serv", "'serv' is unknown", ": did you mean serve?"),
    ("xyz", "'xyz' is not one of serve, login,", ", eval."),
    ("serve --prot 1", "`tagcall serve` takes no --prot", ": did you mean --port?"),
    ("serve --zzz=1", "`tagcall serve` takes no --zzz: see", "serve --help`."),
    ("serve there", "`tagcall serve` takes no there: see", "serve --help`."),
    ("serve --port", "--port needs a value", "serve --help` lists what it takes."),
    ("serve --loop-guard=on", "--loop-guard takes no value", "serve --help` lists what it takes."),
    ("serve --co x", "`tagcall serve` takes no --co", "serve --help`."),
    ("serve --log-level loud", "--log-level must be one of debug, info,", ", not 'loud'."),
    ("login --device-auth", "`tagcall login` takes no --device-auth: write `", "tagcall login -- --device-auth`."),
    ("login --device-auth --codex-home=h", "`tagcall login` takes no", " --codex-home=h -- --device-auth`."),
    ("login --codex-hom h", "`tagcall login` takes no --codex-hom", ": did you mean --codex-home?"),
    ("login --codex-home", "--codex-home needs a value: `", "tagcall login --help` lists what it takes."),
    ("doctor --no-trun", "`tagcall doctor` takes no --no-trun", ": did you mean --no-turn?"),
    ("setup --plugin", "--plugin needs a value", "setup --help` lists what it takes."),
    ("settings --zzz", "`tagcall settings` takes no --zzz", "settings --help`."),
    ("record", "DIR is missing", "record --help` lists what it takes."),
    ("replay --jobs 0 DIR", "--jobs: '0' is not a number of 1 or more", "replay --help` lists what it takes."),
    ("demo fast", "`tagcall demo` takes no fast", "demo --help`."),
    ("log --port", "--port needs a value", "log --help` lists what it takes."),
    ("service", "install|status|remove is missing", "service --help` lists what it takes."),
    ("service instal", "'instal' is unknown", ": did you mean install?"),
    ("service uninstall", "'uninstall' is not one of install, status, remove", "."),
    ("service remove -- --port 1", "Flags of `tagcall serve` are for `", "service install`: remove takes none."),
    ("service install --strat", "`tagcall service` takes no --strat", ": did you mean --start?"),
    ("service --port 8788", "'8788' is not one of install, status, remove", "."),
    ("service --port=8788", "`tagcall service` takes no --port: see", "service --help`."),
    ("serve --codex=", "--codex must not be empty", "."),
    ("service install --port 8788", "`tagcall service` takes no --port: write `", "service install -- --port 8788`."),
    (
        "service install --port=8788 --lanes off --start -- --inspect",
        "`tagcall service` takes no --port: write `",
        "service install --start -- --port=8788 --lanes off --inspect`.",
    ),
    ("service install -- --prot 1", "`tagcall serve` takes no --prot", ": did you mean --port?"),
    ("eval --half third", "'third' is not one of tuning, confirmation", "."),
]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    tell_as("console")


@pytest.mark.parametrize(("typed", "beginning", "end"), WRONG, ids=[typed for typed, *_ in WRONG])
def test_what_is_wrong_is_one_sentence_that_says_what_to_do(
    typed: str, beginning: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"tagcall: {beginning}")
    assert told.err.endswith(f"{end}\n")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("typed", [typed for typed, *_ in WRONG if typed.startswith(("serve", "doctor", "settings"))])
def test_where_the_log_is_json_so_is_what_is_wrong(
    typed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(typed.split()) == 2
    sentence = capsys.readouterr().err.rstrip("\n")
    command, *flags = typed.split()
    assert main([command, "--log-format", "json", *flags]) == 2
    by_flag = json.loads(capsys.readouterr().err)
    monkeypatch.setenv("TAGCALL_LOG_FORMAT", "json")
    assert main(typed.split()) == 2
    by_variable = json.loads(capsys.readouterr().err)
    assert (by_flag["event"], by_flag["level"]) == (by_variable["event"], by_variable["level"]) == (sentence, "error")


@pytest.mark.parametrize("wrong", ["--prot 1", "--port 99999", "--port", "--base-path a?b"])
@pytest.mark.parametrize("command", ["doctor", "log"])
def test_who_asks_for_json_is_told_in_json(command: str, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--json", *wrong.split()]) == 2
    told = capsys.readouterr()
    assert (told.out, json.loads(told.err)["level"]) == ("", "error")


@pytest.mark.parametrize(
    ("typed", "json_wanted"),
    [
        ("serve --log-format json", True),
        ("serve --log-format=json", True),
        ("serve --log-f json", False),
        ("serve --log-format json --log-format console", False),
        ("serve --log-format", False),
        ("serve --log-level json", False),
        ("eval --json FILE", False),
        ("serve --json", False),
    ],
)
def test_what_is_typed_says_whether_errors_are_json(typed: str, json_wanted: bool) -> None:
    assert wants_json(typed.split(), {}) is json_wanted
    assert wants_json([], {"TAGCALL_LOG_FORMAT": "json"})


@pytest.mark.parametrize(
    ("typed", "behind"),
    [
        ("service install --start -- --port 8788 --lanes off", "--port 8788 --lanes off"),
        ("service --start install -- --port 8788", "--port 8788"),
        ("service install -- --port 8788", "--port 8788"),
        ("service install --start", ""),
        ("login --codex-home home -- --device-auth", "--device-auth"),
        ("login one --codex-home home -- two", "one two"),
    ],
)
def test_what_stands_behind_two_dashes_is_taken_wherever_the_flags_stand(typed: str, behind: str) -> None:
    parsed = vars(build_parser().parse_args(typed.split()))
    assert parsed["serve_flags" if typed.startswith("service") else "codex_arguments"] == behind.split()


def test_the_command_alone_shows_those_of_a_first_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert re.findall(r"^  tagcall (\w+)", told.out, re.MULTILINE) == ["demo", "setup", "serve", "doctor", "service"]
    assert told.err == ""


@pytest.mark.parametrize("typed", ["--help", "-h", "--version", "serve --help", "eval -h"])
def test_help_is_no_error(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(typed.split())
    assert end.value.code == 0
    assert "tagcall" in capsys.readouterr().out


def test_usage_is_a_line_and_says_what_stands_behind_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for command, usage in {
        "serve": "[FLAG ...]",
        "login": "[FLAG ...] [-- ARGUMENT ...]",
        "record": "[FLAG ...] DIR",
        "service": "install|status|remove [--start] [-- FLAG ...]",
    }.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: tagcall {command} {usage}\n\n")


def test_help_of_serve_has_groups_and_begins_with_ten_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    first, *others = re.split(r"\n(?=[A-Z][A-Za-z ]+:\n)", capsys.readouterr().out)[1:]
    assert first.startswith("Most used:")
    assert len(re.findall(r"^  --", first, re.MULTILINE)) == 11  # with --config
    headings = [part.partition(":")[0] for part in others]
    assert headings == list(dict.fromkeys(row.group for row in SETTINGS if not row.first))


def test_help_says_which_flags_may_be_given_again() -> None:
    (commands,) = (action for action in build_parser()._actions if isinstance(action, _SubParsersAction))
    actions = [action for parser in commands.choices.values() for action in parser._actions]
    given_again = {action.dest for action in actions if isinstance(action, _AppendAction)}
    assert given_again == {action.dest for action in actions if "Repeatable" in str(action.help)} > {"alias", "only"}
