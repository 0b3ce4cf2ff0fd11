"""POST /v1/responses/input_tokens."""

from __future__ import annotations

from typing import Any

import pytest
from openai import BadRequestError

from tests.support.talking import TOOLS, talking


async def test_the_estimate_grows_with_what_the_model_would_be_shown() -> None:
    async with talking("one") as (client, backend):
        short = await client.responses.input_tokens.count(model="m", input="Hello")
        assert (short.object, short.input_tokens) == ("response.input_tokens", 1)
        assert 1_000 <= (await client.responses.input_tokens.count(input="one word " * 500)).input_tokens <= 1_100
        image: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}]
        assert (await client.responses.input_tokens.count(input=image)).input_tokens == 1_000
        with_tools = await client.responses.input_tokens.count(input="Hello", tools=TOOLS, instructions="Be kind.")
        assert with_tools.input_tokens > short.input_tokens + 200
        response = await client.responses.create(model="m", input="word " * 100)
        counted = await client.responses.input_tokens.count(input="Hello", previous_response_id=response.id)
        assert counted.input_tokens > 100
        assert len(backend.prompts) == 1


async def test_a_request_that_would_be_refused_is_not_counted() -> None:
    async with talking() as (client, _):
        with pytest.raises(BadRequestError, match="input"):
            await client.responses.input_tokens.count(model="m")
