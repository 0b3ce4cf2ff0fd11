"""The names that differ between the two versions of the Realtime API: GA, and the beta that older clients speak."""

from __future__ import annotations

from msgspec import Struct


class Words(Struct, frozen=True):
    modalities: str
    max_output_tokens: str
    text: str
    """How the names of the events of a text begin."""
    part: str
    """The type of a text part in an assistant's message."""
    added: str
    """The event of an item that came to the conversation."""
    done: str | None
    """The event of an item that is whole there; None where there is no such event."""
    session: tuple[tuple[str, object], ...]
    """What a session object holds besides."""


# What is current.
GA = Words(
    modalities="output_modalities",
    max_output_tokens="max_output_tokens",
    text="response.output_text",
    part="output_text",
    added="conversation.item.added",
    done="conversation.item.done",
    session=(("type", "realtime"), ("truncation", "auto"), ("prompt", None), ("include", None)),
)

# What older clients ask for by a header or a subprotocol.
BETA = Words(
    modalities="modalities",
    max_output_tokens="max_response_output_tokens",
    text="response.text",
    part="text",
    added="conversation.item.created",
    done=None,
    session=(("turn_detection", None), ("input_audio_transcription", None)),
)
