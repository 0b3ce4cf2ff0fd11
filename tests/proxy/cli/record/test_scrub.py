"""What a recording does not tell."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.record import scrubber_for
from proxy.cli.record.scrub import Scrubber, scrub_messages
from proxy.settings import Settings

KEY = "sk-proj-" + "a1B2" * 8


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        (f"use {KEY}, please", "use [key], please"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [key]"),
        ("ghp_" + "x" * 36, "[key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "[key]"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "[key]"),
        ("/home/alice/vault/a.md and /Users/bob", "/home/user/vault/a.md and /home/user"),
        ("/root/.codex but not /rooted", "/home/user/.codex but not /rooted"),
        ("mailto=ann%40corp.org", "mailto=user@example.com"),
        ("https://hooks.slack.com/services/T0/B0/" + "aB" * 12, "https://hooks.slack.com/[key]"),
        ("https://discord.com/api/webhooks/" + "1" * 18 + "/" + "a_B-" * 17, "https://discord.com/api/webhooks/[key]"),
        (r"C:\Users\Alice\vault", r"C:\Users\user\vault"),
        (
            "ask ann@corp.org or bo@corp.org, ann@corp.org",
            "ask user@example.com or user2@example.com, user@example.com",
        ),
        (
            "in /tmp/pytest-of-ann/pytest-3/test_a0/a.md, /private/var/folders/x1/y_2/T/tmpab_12cd9/b and /tmp/mine",
            "in /home/user/test_a0/a.md, /home/user/b and /tmp/mine",
        ),
        (r"C:\Users\Ann\AppData\Local\Temp\pytest-of-Ann\pytest-3\popen-gw0\a.md", r"C:\Users\user\a.md"),
        ("limit reached in organization org-Ab1" + "x" * 21, "limit reached in organization [key]"),
        ("user-authenticationmiddleware", "user-authenticationmiddleware"),
        ("the token is my-own-key", "the token is [key]"),
        ("in /srv/secret-project/notes", "in /home/user/notes"),
        ("nothing at all: sk-1, a@b, /homework", "nothing at all: sk-1, a@b, /homework"),
    ],
)
def test_keys_people_and_private_folders_are_replaced(text: str, scrubbed: str) -> None:
    scrubber = Scrubber(keys=["my-own-key"], folders=[Path("/srv/secret-project")])
    assert scrubber.text(text) == scrubbed


@pytest.mark.parametrize(
    "key",
    [
        "sk_live_" + "a1" * 12, "rk_test_" + "a1" * 12, "whsec_" + "a1" * 16, "gsk_" + "a1" * 26, "r8_" + "a1" * 18,
        "xai-" + "a1" * 40, "nvapi-" + "a1_b-" * 12, "tvly-dev-" + "a1" * 12, "ntn_" + "1" * 11 + "aB" * 17,
        "lsv2_pt_" + "0f" * 16 + "_" + "0f" * 5, "shpat_" + "0f" * 16, "dop_v1_" + "0f" * 32, "GOCSPX-" + "a_1-" * 7,
        "ya29.a0" + "A_b-1" * 9, "1//0" + "e_F-1" * 9, "SG." + "a_1-" * 5 + "." + "b-2_" * 10, "ASIA" + "Q4" * 8,
        "123456789:AA" + "h_G-1" * 6 + "ab", "xapp-1-" + "A1" * 20, "hvs." + "a1_-" * 8,
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ+a=\n-----END PGP PRIVATE KEY BLOCK-----",
    ],
)  # fmt: skip
def test_the_keys_of_well_known_services_are_told_by_how_they_begin(key: str) -> None:
    assert Scrubber().text(f"use {key}, please") == "use [key], please"


@pytest.mark.parametrize(
    "text",
    [
        "jina-embeddings-v2-base-en and xai-grok-4-fast-reasoning by pplx-online, whose gsk_ and r8_ are short",
        "Fortune cookie: chocolate, a cookie: it is crisp; the API key: not here",
        "account_id: 17, sig=short, ASIATICA 123456789:AA",
    ],
)
def test_what_only_begins_as_a_key_stays(text: str) -> None:
    assert Scrubber().text(text) == text


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("a note of notes, or a Note", "a [key] of notes, or a Note"),
        ("Bearer note, /note/1 and note_1", "Bearer [key], /[key]/1 and [key]_1"),
        (r"""{"text": "one\nnote\tnote\\nnote"}""", r"""{"text": "one\n[key]\t[key]\\n[key]"}"""),
        ("denote", "denote"),
    ],
)
def test_a_short_key_is_found_where_it_is_no_part_of_a_word(text: str, scrubbed: str) -> None:
    assert Scrubber(keys=["note"]).text(text) == scrubbed


def test_a_private_folder_is_found_inside_of_json_too() -> None:
    scrubber = Scrubber(folders=[Path(r"C:\Users\Ann Lee")])
    for text in (r"C:\Users\Ann Lee\a.md", r"C:\\Users\\Ann Lee\\a.md"):
        assert "Lee" not in scrubber.text(text)


def test_members_that_name_a_person_are_replaced_and_everything_else_keeps_its_shape() -> None:
    value = {
        "user": "u-17",
        "safety_identifier": "x",
        "prompt_cache_key": "ann's",
        "input": [{"role": "user", "content": "hi"}],
        "n": 1,
    }
    named = dict.fromkeys(("user", "safety_identifier", "prompt_cache_key"), "somebody")
    assert Scrubber().value(value) == {**value, **named}


def test_a_key_that_comes_in_pieces_is_found() -> None:
    pieces = ["use ", KEY[:5], KEY[5:20], f"{KEY[20:]} he", "re"]
    assert Scrubber().pieces(pieces) == ["use ", "[key]", "", " he", "re"]


def test_deltas_are_scrubbed_as_the_text_that_they_make() -> None:
    def delta(text: str, item: str) -> dict[str, object]:
        return {"method": "item/agentMessage/delta", "params": {"threadId": "T", "itemId": item, "delta": text}}

    messages = [delta(KEY[:9], "a"), delta("hello", "b"), delta(KEY[9:], "a")]
    assert scrub_messages(messages, Scrubber()) == [delta("[key]", "a"), delta("hello", "b"), delta("", "a")]


@given(st.text(), st.lists(st.integers(0, 60)))
def test_however_a_text_is_cut_the_same_is_left(text: str, cuts: list[int]) -> None:
    whole = f"{text} {KEY} /home/alice/x {text}"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[begin:end] for begin, end in pairwise(places)]
    assert "".join(Scrubber().pieces(pieces)) == Scrubber().text(whole)
    assert KEY not in Scrubber().text(whole)


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("password=hunter2", "password=[redacted]"),
        ("DB_PASSWORD=hunter2; host=db", "DB_PASSWORD=[redacted]; host=db"),
        ("my Password: hunter2, and more", "my Password: [redacted], and more"),
        ("**Password:** hunter2!", "**Password:** [redacted]"),
        ("passphrase: `a b`", "passphrase: `[redacted] b`"),
        ("password = 'two words'", "password = '[redacted]'"),
        ('{"password": "two \\"words", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        (r'"{\"apiKey\": \"two \\\"words\", \"n\": 1}"', r'"{\"apiKey\": \"[redacted]\", \"n\": 1}"'),
        ("/login?user=ann&token=abc&next=1", "/login?user=ann&token=[redacted]&next=1"),
        ("api_key: 12ab34cd56", "api_key: [redacted]"),
        ("psql --db-password hunter2 -c x", "psql --db-password [redacted] -c x"),
        ("postgres://ann:hunter2@db/notes", "postgres://ann:[redacted]@db/notes"),
        ("Authorization: Basic YW5uOmh1bnRlcjI=", "Authorization: Basic [redacted]"),
        ("Cookie: sid=1a2b; theme=dark\nHost: x", "Cookie: [redacted]\nHost: x"),
        (r'"{\"set-cookie\": \"sid=1a2b; Secure\", \"n\": 1}"', r'"{\"set-cookie\": \"[redacted]\", \"n\": 1}"'),
        ("/a.md?se=2026&sig=" + "aB%2F" * 6 + "&n=1", "/a.md?se=2026&sig=[redacted]&n=1"),
        ('"account_id": "7d1e4a1e-1b2c-4d3e-8f90-0123456789ab"', '"account_id": "[redacted]"'),
        ("API key: 12ab34cd56", "API key: [redacted]"),
        (f"api_key={KEY}", "api_key=[key]"),
        ("password=[redacted]", "password=[redacted]"),
        ("token: a string, password: str, max_tokens: 100, password=$SECRET, secret == x", None),
    ],
)
def test_what_a_name_says_to_be_secret_is_replaced(text: str, scrubbed: str | None) -> None:
    assert Scrubber().text(text) == (text if scrubbed is None else scrubbed)
    assert Scrubber().text(Scrubber().text(text)) == Scrubber().text(text)


def test_so_is_the_text_of_a_member_of_such_a_name() -> None:
    value = {"dbPassword": "x", "client_secret": "y", "token": "", "properties": {"password": {"type": "string"}}}
    assert Scrubber().value(value) == {**value, "dbPassword": "[redacted]", "client_secret": "[redacted]"}


@given(st.sampled_from(["password", "api_key", "token"]), st.text(min_size=1))
def test_json_stays_json_without_its_secret(name: str, secret: str) -> None:
    inner = json.dumps({name: secret, "n": [1]}, ensure_ascii=False)
    for text in (inner, json.dumps({"arguments": inner}, ensure_ascii=False)):
        value = json.loads(Scrubber().text(text))
        value = json.loads(value["arguments"]) if "arguments" in value else value
        assert (value[name], value["n"]) == ("[redacted]", [1])


def test_what_fits_a_pattern_goes_or_the_first_group_of_it() -> None:
    scrubber = Scrubber(patterns=[re.compile("ACME"), re.compile(r"customer (\d+)"), re.compile("x*")])
    assert scrubber.text("customer 17 of ACME") == "customer [redacted] of [redacted]"
    either = Scrubber(patterns=[re.compile(r"customer (\d+)|ACME")])
    assert either.text("customer 17 of ACME") == "customer [redacted] of [redacted]"


def test_nothing_is_left_of_a_key_that_a_pattern_cuts_through() -> None:
    assert Scrubber(patterns=[re.compile(f"use {KEY[:9]}")]).text(f"I use {KEY}.") == "I [redacted]."


def test_who_has_no_home_has_no_such_folder_to_hide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    settings = Settings(codex_home=tmp_path / "codex", store="none", call_key_secret=tmp_path / "key")
    scrubber_for(settings, tmp_path / "fixtures")


def test_no_key_of_the_server_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "upstream").write_text("one-of-the-upstream\n", "utf-8")
    settings = Settings(
        backend="http://127.0.0.1:9/v1",
        api_key=("one-of-a-client",),
        inspect_key="one-of-the-page",
        backend_key_file=tmp_path / "upstream",
    )
    scrubber = scrubber_for(settings, tmp_path)
    said = "Incorrect key one-of-the-upstream, nor one-of-the-page or one-of-a-client."
    assert scrubber.text(said) == "Incorrect key [key], nor [key] or [key]."
