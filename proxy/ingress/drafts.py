"""A Response that is being made, and what it is stored as."""

from __future__ import annotations

from dataclasses import dataclass

from ..contracts import StoredResponse, WireObject
from ..wire.responses.builder import ResponsesBuilder
from ..wire.responses.request import ResponsesRequest


@dataclass(frozen=True, slots=True)
class Draft:
    """`input` are the request's own items, as they are kept."""

    owner: str
    request: ResponsesRequest
    builder: ResponsesBuilder
    input: tuple[WireObject, ...]

    @property
    def conversation(self) -> str | None:
        """The conversation that the answer joins."""
        conversation = self.request.echo.get("conversation")
        return None if conversation is None else str(conversation["id"])

    def stored(self) -> StoredResponse:
        """The Response as it is now."""
        return StoredResponse(
            id=self.builder.id,
            previous=self.request.echo["previous_response_id"],
            owner=self.owner,
            created_at=self.builder.created_at,
            input=self.input,
            response=self.builder.response,
        )
