"""Records that were written, and records that something happened to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.stores.records import DIGEST_SIZE, _sealed, decode, encode, pack, unpack

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_a_record_comes_back_as_it_was(record: dict[str, object]) -> None:
    assert decode(encode(record)) == record


@given(st.binary(max_size=2_000))
def test_an_event_stream_comes_back_as_it_was(events: bytes) -> None:
    assert unpack(pack(events)) == events


@given(st.binary(max_size=200))
def test_what_nobody_wrote_reads_as_nothing(blob: bytes) -> None:
    assert decode(blob) is None
    assert unpack(blob) is None


@given(st.data())
def test_one_changed_byte_or_a_cut_makes_a_record_unreadable(data: st.DataObject) -> None:
    written = encode({"id": "resp_1", "text": "some text"})
    at = data.draw(st.integers(0, len(written) - 1))
    changed = bytearray(written)
    changed[at] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(changed)) is None
    assert decode(written[:at]) is None


def test_a_sealed_record_is_still_not_trusted() -> None:
    assert decode(_sealed(b"[1]")) is None
    assert decode(_sealed(b"{")) is None
    assert decode(_sealed(b'{"a":' * 500 + b"1" + b"}" * 500)) is None
    assert unpack(_sealed(b"not compressed")) is None
    assert unpack(pack(b"x" * 1_000)[: DIGEST_SIZE + 5]) is None
