"""Network chunks are not SSE lines (MS-06)."""

from hypothesis import given
from hypothesis import strategies as st

from labbook.sse import Event, EventReader

STREAM = (
    '\ufeff: keep-alive\r\n\r\ndata: {"a": "é\u2028"}\r\n\r\n'
    "event: error\ndata: one\ndata: two\n\ndata:tight\r\rid: 7\nretry: 10\n\ndata: last"
).encode()
EVENTS = [Event('{"a": "é\u2028"}'), Event("one\ntwo", "error"), Event("tight"), Event("last")]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_events_do_not_depend_on_where_the_network_cuts(cuts: list[int]) -> None:
    reader, events, start = EventReader(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        events += reader.feed(STREAM[start:cut])
        start = cut
    assert events + reader.finish() == EVENTS


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    reader, events = EventReader(), []
    for value in STREAM:
        events += reader.feed(bytes([value]))
    assert events + reader.finish() == EVENTS


def test_an_event_is_complete_at_its_blank_line_and_not_before() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"\r") == [Event("a")]
    assert reader.feed(b"\ndata: b\n\n") == [Event("b")]


def test_keep_alives_and_empty_events_are_no_events() -> None:
    reader = EventReader()
    assert reader.feed(b": ping\n\n\n\nevent: x\n\n:\n\n") == []
    assert reader.finish() == []
