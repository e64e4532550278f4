"""How a message of a client on a WebSocket differs from the one that is expected."""

from __future__ import annotations

from typing import Any

from mockllm.play.matching.socket_changes import SocketIds, message_changes
from tests.cases import for_all

_SILENCE = "AAAA" * 20
_LOUD = "ABCD" * 20


def _ids() -> SocketIds:
    return SocketIds({"call_serv1": 0, "late_1": 2}, {"mine_old": "mine_new"}, turn=1)


@for_all(
    ("expected", "sent"),
    [
        ({"type": "a", "event_id": "e1"}, {"type": "a", "event_id": "other"}),
        ({"type": "a", "event_id": "e1"}, {"type": "a"}),
        ({"type": "a"}, {"type": "a", "eventId": "e1"}),
        ({"item": {"id": "i1"}}, {"item": {"id": "i2"}}),
        ({"previous_item_id": "mine_old"}, {"previous_item_id": "mine_new"}),
        ({"call_id": "call_serv1"}, {"call_id": "call_serv1"}),
        ({"call_id": "late_1"}, {"call_id": "any"}),
        ({"audio": _SILENCE}, {"audio": _LOUD}),
        ({"a": None, "b": 1}, {"b": 1}),
        ({"clientContent": {"turns": []}}, {"client_content": {"turns": []}}),
        ({"realtime_input": {"text": "a"}}, {"realtimeInput": {"text": "a"}}),
        ("hello", "hello"),
        (b"abc", b"abc"),
        ("<3 bytes>", b"abc"),
    ],
)
def test_the_same(expected: Any, sent: Any) -> None:
    """Ids that a client makes up, fields of null and the content of media do not count."""
    assert message_changes(expected, sent, _ids()) == ()


@for_all(
    ("expected", "sent", "change"),
    [
        ({"call_id": "call_serv1"}, {"call_id": "x"}, 'call_id: "call_serv1" → "x"'),
        ({"call_id": "call_serv1"}, {}, 'call_id: "call_serv1" → nothing'),
        ({"item_id": "i1"}, {"item_id": "call_serv1"}, 'item_id: "i1" → "call_serv1"'),
        (
            {"i": [{"item_id": "mine_old"}]},
            {"i": [{"item_id": "x"}]},
            'i[0].item_id: "mine_new" → "x"',
        ),
        ({"voice_id": "a"}, {"voice_id": "b"}, 'voice_id: "a" → "b"'),
        ({"prompt": {"id": "a"}}, {"prompt": {"id": "b"}}, 'prompt.id: "a" → "b"'),
        ({"audio": _SILENCE}, {"audio": _LOUD + "ABCD"}, 'audio: "<60 bytes>" → "<63 bytes>"'),
        ({"type": "a"}, {"type": "a", "x": 1}, "x: nothing → 1"),
        ("hello", {"a": 1}, 'message: "hello" → {"a":1}'),
        ("hello", "help", 'message: "hello" → "help"'),
        (b"abc", b"abd", "message: other bytes"),
        ("<3 bytes>", b"ab", 'message: "<3 bytes>" → "<2 bytes>"'),
    ],
)
def test_a_difference_names_its_field(expected: Any, sent: Any, change: str) -> None:
    """Ids of the service, settings, the number of bytes and all else count."""
    assert message_changes(expected, sent, _ids()) == (change,)


def test_a_uuid_of_the_service_has_to_come_back() -> None:
    """UUIDs of a client are made up anew; one that the service sent is not."""
    one, other = (f"call-af8ed632-2074-4b5f-b719-7aa47250d3c{n}-0" for n in "67")
    assert message_changes({"x": one}, {"x": other}, _ids()) == ()
    ids = SocketIds({one: 0}, turn=1)
    assert message_changes({"x": one}, {"x": other}, ids) == (f'x: "{one}" → "{other}"',)


def test_a_part_of_a_message() -> None:
    """Of what a person wrote, fields that are not named do not count, and ignored ones do not."""
    sent = {"type": "a", "more": 1, "audio": _LOUD, "at": "2026-01-31T12:00:00Z"}
    expected = {"type": "a", "audio": "<60 bytes>", "at": "2025-01-31T12:00:00Z"}
    assert message_changes(expected, sent, _ids(), ("timestamp",), partial=True) == ()
    (change,) = message_changes({"type": "b"}, sent, _ids(), partial=True)
    assert change.startswith("message.type must be")


def test_ids_of_the_client_are_put_into_messages() -> None:
    """As whole strings, with what they need in JSON."""
    ids = SocketIds({})
    assert message_changes({"item_id": "old"}, {"item_id": 'n"w'}, ids) == ()
    assert ids.put_into(b'{"a":"old","b":"older"}') == rb'{"a":"n\"w","b":"older"}'
