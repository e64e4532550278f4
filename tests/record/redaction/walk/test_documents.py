"""The values of a document of any kind, and the channels in which a client joins them."""

from __future__ import annotations

import pytest

from mockllm.record.redaction.walk.documents import Channel, Document, document
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

MARK = "\ufeff"


def read(text: str, *, every: bool = False) -> Document:
    found = document(text, every=every)
    assert found is not None
    for value in found.values:
        start, end = value.span(0, len(value.text))
        if value.written is None and "\n" not in value.text:
            assert text[start:end] == value.text
    return found


def texts(found: Document) -> list[str]:
    return [value.text for value in found.values]


def kinds(found: Document) -> list[tuple[str, str]]:
    return [(value.field.kind, value.text) for value in found.values]


def channels(found: Document) -> list[tuple[list[str], bool, bool]]:
    return [([one.text for one in c.values], c.exact, c.whole) for c in found.channels]


# JSON


@pytest.mark.parametrize("before", ["", " \t\r\n", MARK, MARK + " \n"])
def test_a_json_document(before: str) -> None:
    """White space and a byte order mark may come first; the names of all fields are known."""
    found = read(before + '{"a": "x", "b": {"c": "y", "n": 1}}')
    assert texts(found) == ["x", "y"]
    assert found.names == {"a", "b", "c", "n"}
    assert found.channels == ()


def test_names_and_numbers_on_request() -> None:
    """As the finder needs them where names or patterns may be secrets."""
    assert kinds(read('{"a": 1}', every=True)) == [("name", "a"), ("number", "1")]


@for_all(
    "text", ["", "plain", "12", '"x"', "  ", MARK, "{no json", "(data: x)", "xdata: {}", "{}x"]
)
def test_what_is_no_document(text: str) -> None:
    """Any other text."""
    assert document(text) is None


def test_json_that_breaks_off() -> None:
    """It is read as far as it goes, after a mark as well."""
    assert texts(read('{"a": "x", "b": ["y", "z')) == ["x", "y", "z"]
    assert texts(read(MARK + ' {"a": "x')) == ["x"]
    assert read('{"a": "x').channels == ()


def test_a_json_array_of_events() -> None:
    """Gemini's stream without SSE: the same path in each element is a channel."""
    found = read('[{"a": {"text": "x"}, "id": "1"}, {"a": {"text": "y"}, "id": "2"}]')
    assert channels(found) == [(["x", "y"], True, False)]
    assert read('{"l": [{"text": "x"}, {"text": "y"}]}').channels == ()


# JSON lines


def test_json_lines() -> None:
    """A document each; the last one may break off."""
    found = read('{"delta": "x"}\n\r\n{"delta": "y", "n": "1"}\r{"delta": "z')
    assert texts(found) == ["x", "y", "1", "z"]
    assert channels(found) == [(["x", "y", "z"], True, True), (["1"], True, False)]
    assert found.names == {"delta", "n"}
    assert document('{"a": "x}\n{"a": "y"}') is None


# Event streams


def test_an_event_stream() -> None:
    """The documents of its events, and the plain text between and around them."""
    text = (
        ': a comment\n\nevent: one\ndata: {"text": "x"}\n\n'
        'id: some id\ndata:{"text": "y"}\r\n\r\ndata: {"text": "z"}\r\rdata: [DONE]\n\n: the end\n'
    )
    assert kinds(read(text)) == [
        ("plain", ": a comment\n\nevent: one\ndata: "),
        ("string", "x"),
        ("plain", "\n\nid: some id\ndata:"),
        ("string", "y"),
        ("plain", "\r\n\r\ndata: "),
        ("string", "z"),
        ("plain", "\r\rdata: [DONE]\n\n: the end\n"),
    ]


def test_where_the_values_of_events_are() -> None:
    """In the stream, also those of data in several lines."""
    text = (
        'data: {"a": "x",\ndata:  "b": "y",\r\ndata:"c": ["z", "\\u0041"]}\n\ndata: {"a": "w"}\n\n'
    )
    found = read(text)
    strings = [value for value in found.values if value.field.kind == "string"]
    assert [value.text for value in strings] == ["x", "y", "z", "A", "w"]
    assert [text[slice(*value.span(0, len(value.text)))] for value in strings] == [
        "x",
        "y",
        "z",
        "\\u0041",
        "w",
    ]


@pytest.mark.parametrize("before", ["", MARK, "event: x\n", ": c\n\n", "\r"])
def test_how_an_event_stream_begins(before: str) -> None:
    """With `data:` at the beginning of any line."""
    found = read(before + 'data: {"a": "x"}\n\n')
    assert [value.text for value in found.values if value.field.kind == "string"] == ["x"]


def test_an_event_stream_without_json() -> None:
    """Text alone is no document, and neither is an event that is no JSON."""
    assert document("data: hello\n\ndata: world\n\n") is None
    assert document("data: {no json\n\n") is None


def test_an_event_that_breaks_off() -> None:
    """It is read as far as it goes; other broken events are plain text."""
    text = 'data: {"a": "x"}\n\ndata: {no json}\n\ndata: {"a": "y'
    assert kinds(read(text)) == [
        ("string", "x"),
        ("plain", "\n\ndata: {no json}\n\ndata: "),
        ("string", "y"),
    ]


def test_payloads_that_are_no_json() -> None:
    """Each is a value of its own if it has one line; they are a channel."""
    found = read('data: one\n\ndata: {"a": "x"}\n\ndata: two\ndata: lines\n\ndata: three\n\n')
    assert [text for kind, text in kinds(found) if kind == "payload"] == ["one", "three"]
    assert (["one", "three"], True, False) in channels(found)


# Channels


def event(**fields: str) -> str:
    inner = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    return f"data: {{{inner}}}\n\n"


def test_a_channel_is_what_a_client_joins() -> None:
    """Values with the same path, type and item; fragments mean nothing alone."""
    text = event(type='"d"', index="0", delta='"a"') + event(type='"d"', index="1", delta='"b"')
    text += event(type='"d"', index="0", delta='"c"') + event(type='"e"', index="0", delta='"d"')
    text += event(type='"d"', index="0", note='"n"')
    assert channels(read(text)) == [
        (["a", "c"], True, True),
        (["b"], True, True),
        (["d"], True, True),
        (["n"], True, False),
        (["a", "b", "c"], False, False),
    ]


def test_items_that_are_named_once() -> None:
    """A loose channel has the values of all items of a path and type, in the order of the text."""
    text = (
        event(item_id='"i"', delta='"a"') + event(delta='"b"') + event(item_id='"j"', delta='"c"')
    )
    assert channels(read(text))[-1] == (["a", "b", "c"], False, False)
    text = '[{"index": 1, "text": "a"}, {"index": 0, "text": "b"}, {"index": 1, "text": "c"}]'
    assert channels(read(text)) == [
        (["a", "c"], True, False),
        (["b"], True, False),
        (["a", "b", "c"], False, False),
    ]


def test_the_fields_of_the_apis() -> None:
    """Fragments mean nothing alone. What is the same in each event, or means something alone, no
    client joins."""
    for protocol in PROTOCOLS.values():
        fields = protocol.fields
        for name in fields.fragments | fields.labels | fields.opaque:
            expected = [(["a", "b"], True, True)] if name in fields.fragments else []
            text = event(**{name: '"a"'}) + event(**{name: '"b"'})
            assert channels(read(text)) == expected, (protocol.name, name)


def test_names_and_numbers_are_in_no_channel() -> None:
    """Nor is the text between events."""
    found = read(event(delta='"a"', n="1") + event(delta='"b"', n="2"), every=True)
    assert channels(found) == [(["a", "b"], True, True)]
    assert isinstance(found.channels[0], Channel)
