"""Errors as values."""

from __future__ import annotations

import copy

import pytest

from proxy.errors import ApiError, BackendError, ModelError, StoreError


@pytest.mark.parametrize(
    "error",
    [
        ModelError("The answer is no JSON.", code="schema_not_kept", param="format"),
        StoreError("the disk is full"),
        BackendError("Gone", remedy="start it again", retry_after=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_kind_of_error_can_be_told_in_other_words(error: ApiError) -> None:
    before = vars(error).copy()
    told = copy.copy(error)
    assert (type(told), vars(told), str(told)) == (type(error), before, str(error))
    told.message = "In other words."
    assert vars(error) == before


def test_half_a_surrogate_pair_in_its_words_keeps_no_error_from_being_written() -> None:
    """Bytes of a header that are no UTF-8 become such halves."""
    assert ApiError("The origin \udcff is not served.", remedy="none").message == "The origin ? is not served.: none."
