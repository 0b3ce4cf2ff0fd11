"""Parameters that several APIs have, held against the official client's."""

from __future__ import annotations

import pytest
from openai.types.responses.response_text_config import ResponseTextConfig
from openai.types.responses.service_tier import ServiceTier
from openai.types.shared.reasoning import Reasoning

from proxy.wire.parameters import EFFORTS, MODEL_NAME, SERVICE_TIERS, VERBOSITIES, parse_metadata
from proxy.wire.reader import Reader
from tests.support.published_types import literals


def test_the_names_of_values_are_the_official_clients() -> None:
    assert set(SERVICE_TIERS) == literals(ServiceTier)
    assert set(EFFORTS) == literals(Reasoning.model_fields["effort"].annotation)
    assert set(VERBOSITIES) == literals(ResponseTextConfig.model_fields["verbosity"].annotation)


@pytest.mark.parametrize("name", ["m", "gpt-5.1", "org/model:7b", "a model", "x" * 256])
def test_every_name_in_use_is_a_models(name: str) -> None:
    assert MODEL_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", " ", " m", "m\n", "\x00", "x" * 257])
def test_what_is_no_name_is_no_models(name: str) -> None:
    assert not MODEL_NAME.fullmatch(name)


def test_no_metadata_is_an_empty_one() -> None:
    assert parse_metadata(Reader({})) == parse_metadata(Reader({"metadata": None})) == {}
    assert parse_metadata(Reader({"metadata": {"a": "b"}})) == {"a": "b"}
