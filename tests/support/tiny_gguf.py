"""A model of two megabytes for llama.cpp's own server: random weights, and a few texts that it knows by heart.

    any prompt        -> `default`
    a word it knows   -> the text of that word, wherever in the prompt it stands; of several the last in the table
    held to a schema  -> random bytes that fit

Its vocabulary are the 256 bytes, the marks of its chat template, the words, and the pieces of the texts. One attention
head looks for words; what it finds chooses a text's first piece at the end of the prompt, and each piece is followed by
the next, also where random bytes came upon it. What it writes otherwise is noise, whose weights are the same on every
machine.

The file is written here: a GGUF is a header, what is told of the model, a table of its tensors, and these.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import TypeAlias

# Roles as marks, any of them in any order.
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# As that of QwQ: it opens the thoughts, and drops those that were.
THINKING_TEMPLATE = (
    TEMPLATE.replace("message.content", "message.content.split('</think>')[-1]")
    + "{% if add_generation_prompt %}<think>\n{% endif %}"
)
# As strict as those of Gemma and Mistral, in their words.
STRICT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

_MARKS = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|developer|>")
_END, _ASSISTANT = 256, 259
# llama.cpp's types of tokens.
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_CONTEXT = 32_768
# Numbers that the attention head works with: words at most.
_HEAD = 32
_FEED_FORWARD = 32
# Characters of a piece, unless another has the same.
_PIECE = 5

# Weights. A next piece is louder than a word's first one, that than the default's, and all than the noise.
_NOISE, _LOOK, _NEXT, _WORD, _DEFAULT = 0.02, 0.5, 30.0, 4.0, 2.0
# Of the noise. No test is to depend on it: any other does as well.
_SEED = 1


@dataclass(frozen=True, slots=True)
class Endless:
    """It is written again and again."""

    text: str


def write_tiny_gguf(
    path: Path, texts: Mapping[str, str | Endless], default: str = "Hello from the tiny model."
) -> None:
    """`texts` by the words that choose them, none of which may be a part of another."""
    words = list(texts)
    first_word = 256 + len(_MARKS)
    starts: dict[str | Endless, int] = {}
    links: list[tuple[int, int]] = []
    pieces: list[str] = []
    for text in (default, *texts.values()):
        if text in starts:
            continue
        cut = _pieces(text.text if isinstance(text, Endless) else text, pieces)
        start = starts[text] = first_word + len(words) + len(pieces)
        pieces += cut
        chain = range(start, start + len(cut))
        links += [*pairwise(chain), (chain[-1], start if isinstance(text, Endless) else _END)]
    spelt = [*map(_spelt, (bytes([byte]) for byte in range(256)))]
    tokens = [*spelt, *_MARKS, *words, *(_spelt(piece.encode()) for piece in pieces)]
    kinds = [_NORMAL] * 256 + [_CONTROL] * len(_MARKS) + [_USER_DEFINED] * len(words) + [_NORMAL] * len(pieces)
    width = -(-(len(tokens) + len(words)) // 32) * 32
    places = _Places(width, first_word, len(tokens), [starts[text] for text in (default, *texts.values())], links)
    _write(path, _told(width, tokens, kinds), [*_tensors(places)])


def _pieces(text: str, taken: Sequence[str]) -> list[str]:
    """`text` cut into pieces that are all different, also from those that are `taken` and from single letters."""
    pieces: list[str] = []
    while text:
        size = _PIECE
        while len(piece := text[:size]) == 1 or piece in taken or piece in pieces:
            if size >= len(text):
                text = pieces.pop() + text
                size = len(text)
            else:
                size += 1
        pieces.append(piece)
        text = text[size:]
    return pieces


def _spelt(data: bytes) -> str:
    """In the alphabet of GPT-2's vocabulary, in which every byte is a letter."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return "".join(chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in data)


@dataclass(frozen=True, slots=True)
class _Places:
    """Each token has a number of its own in the state; behind those of all tokens there is one for each word."""

    width: int
    first_word: int
    tokens: int
    firsts: Sequence[int]
    """The first pieces: that of the default, then those of the words."""
    links: Sequence[tuple[int, int]]


_Tensor: TypeAlias = "tuple[str, tuple[int, ...], array[float]]"


def _tensors(at: _Places) -> Iterator[_Tensor]:
    noise = random.Random(_SEED)  # noqa: S311 -- of a model, not of a secret
    width, words = at.width, range(len(at.firsts) - 1)

    def matrix(name: str, rows: int, columns: int, weights: Mapping[tuple[int, int], float], loud: float) -> _Tensor:
        # By plain arithmetic: a logarithm or a cosine may end in another digit on another machine.
        numbers = (loud * (2 * noise.random() - 1) for _ in range(rows * columns))
        data = array("f", numbers if loud else bytes(4 * rows * columns))
        for (row, column), weight in weights.items():
            data[row * columns + column] = weight
        return f"{name}.weight", (columns, rows), data

    def ones(name: str) -> _Tensor:
        return f"{name}.weight", (width,), array("f", [1.0] * width)

    scale = 1 / sqrt(width)  # of a state, which is normalised before it is looked at
    look = {(_HEAD - 1, at.first_word + word): _LOOK * (word + 1) for word in words}
    found = {(word, at.first_word + word): scale for word in words}
    chosen = {(at.tokens + word, word): 1.0 for word in words}
    said = {(after, before): _NEXT for before, after in at.links}
    said |= {(at.firsts[1 + word], at.tokens + word): _WORD for word in words}
    said[at.firsts[0], _ASSISTANT] = _DEFAULT
    # Without noise, which thousands of tokens together would make louder than one word.
    yield matrix("token_embd", at.tokens, width, {(token, token): 1.0 for token in range(at.tokens)}, 0)
    yield ones("blk.0.attn_norm")
    yield matrix("blk.0.attn_q", _HEAD, width, {(_HEAD - 1, token): 1.0 for token in range(at.tokens)}, 0)
    yield matrix("blk.0.attn_k", _HEAD, width, look, 0)
    yield matrix("blk.0.attn_v", _HEAD, width, found, 0)
    yield matrix("blk.0.attn_output", width, _HEAD, chosen, 0)
    yield ones("blk.0.ffn_norm")
    yield matrix("blk.0.ffn_gate", _FEED_FORWARD, width, {}, 0)
    yield matrix("blk.0.ffn_up", _FEED_FORWARD, width, {}, 0)
    yield matrix("blk.0.ffn_down", width, _FEED_FORWARD, {}, 0)
    yield ones("output_norm")
    yield matrix("output", at.tokens, width, said, _NOISE)


_Told: TypeAlias = Mapping[str, int | float | str | Sequence[str] | Sequence[int]]


def _told(width: int, tokens: Sequence[str], kinds: Sequence[int]) -> _Told:
    return {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.context_length": _CONTEXT,
        "llama.embedding_length": width,
        "llama.block_count": 1,
        "llama.feed_forward_length": _FEED_FORWARD,
        "llama.attention.head_count": 1,
        "llama.attention.head_count_kv": 1,
        "llama.attention.key_length": _HEAD,
        "llama.attention.value_length": _HEAD,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.rope.dimension_count": _HEAD,
        # So slow that the last numbers of the head stay as they are, wherever a token stands.
        "llama.rope.freq_base": 1e20,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": (),
        "tokenizer.ggml.eos_token_id": _END,
        "tokenizer.chat_template": TEMPLATE,
    }


def _write(path: Path, told: _Told, tensors: Sequence[_Tensor]) -> None:
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(told))]
    head += [_text(key) + _value(value) for key, value in told.items()]
    offset = 0
    for name, shape, data in tensors:
        head.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset))
        offset += _padded(4 * len(data))
    written = b"".join(head)
    with path.open("wb") as file:
        file.write(written.ljust(_padded(len(written)), b"\0"))
        for _, _, data in tensors:
            file.write(data.tobytes().ljust(_padded(4 * len(data)), b"\0"))


def _padded(size: int) -> int:
    return -(-size // 32) * 32


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: float | str | Sequence[str] | Sequence[int]) -> bytes:
    match value:
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case _ if value and isinstance(value[0], int):
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
        case _:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(str(item)) for item in value)
