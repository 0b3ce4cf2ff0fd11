"""How the two versions of the Realtime API name what is the same: GA, and the beta that older clients speak."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """`part` is the type of a text part in an assistant's message. `done` None: there is no such event."""

    modalities: str
    max_output_tokens: str
    text: str
    part: str
    added: str
    done: str | None
    session: tuple[tuple[str, object], ...]


GA = Words(
    modalities="output_modalities",
    max_output_tokens="max_output_tokens",
    text="response.output_text",
    part="output_text",
    added="conversation.item.added",
    done="conversation.item.done",
    session=(("type", "realtime"), ("truncation", "auto"), ("prompt", None), ("include", None)),
)

BETA = Words(
    modalities="modalities",
    max_output_tokens="max_response_output_tokens",
    text="response.text",
    part="text",
    added="conversation.item.created",
    done=None,
    session=(("turn_detection", None), ("input_audio_transcription", None)),
)
