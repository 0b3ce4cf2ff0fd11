"""The flags of `tagcall record`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from proxy.cli.record.options import add_record_flags, record_options
from proxy.errors import UsageError


def test_they_become_options() -> None:
    parser = argparse.ArgumentParser()
    add_record_flags(parser)
    options = record_options(vars(parser.parse_args(["there", "--redact", "a+", "--redact", "b", "--replace"])))
    assert (options.folder, [each.pattern for each in options.redact]) == (Path("there"), ["a+", "b"])
    assert options.replace


def test_what_is_no_pattern_is_one_sentence() -> None:
    parser = argparse.ArgumentParser()
    add_record_flags(parser)
    with pytest.raises(UsageError, match=r"--redact \( is not a regular expression: missing \)"):
        record_options(vars(parser.parse_args(["there", "--redact", "("])))
