"""The answer of a request as the page gets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.core.visible_bytes import visible_lines
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.compilation.http_answer import bytes_answer
from mockllm.serve.server.control.server_view import KEEPS, SentAnswers
from mockllm.serve.ui.shown_answers import ShownAnswer, sent_times, stream_json
from mockllm.wire.framing.frame_text import readable
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.conftest import Served
from tests.entries import journal_entry
from tests.serve.ui.test_events import KEYS, ask

SCENARIOS = """\
scenario: hello
match: {user: hello}
turns:
  - reply:
      - {text: "one two three", split: words}
      - {tool: get_secret, arguments: {name: ada}}
---
scenario: timed
match: {user: timed}
turns:
  - reply: [{text: "a b c", split: words, every: 2ms}]
---
scenario: broken
match: {user: broken}
turns:
  - reply: {text: "a b c d", split: words}
    fault: {cut: {after: 2 events, end: reset}}
---
scenario: odd
match: {user: odd}
turns:
  - reply: {text: "a b c", split: words}
    wire: {quirks: [sse-comments]}
"""


def answer_of(served: Served, number: int = 1, session: str = "default") -> dict[str, Any]:
    found = served.http.get(f"/_mockllm/ui/request/{session}/{number}")
    assert found.status_code == 200, found.text
    return found.json()


def bytes_of(part: dict[str, Any]) -> bytes:
    """The bytes that the lines of a part show."""
    ends = {"CR LF": b"\r\n", "CR": b"\r", "LF": b"\n"}
    data = b""
    for line in part["lines"]:
        for piece in line:
            kind, text = ("text", piece) if isinstance(piece, str) else piece[:2]
            data += ends[text] if kind == "end" else text.encode()
    return data


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_the_parts_are_the_bytes_that_were_sent(serve: Callable[..., Served], api: str) -> None:
    served = serve(SCENARIOS)
    received = ask(served, "hello", api).content
    found = answer_of(served)["answer"]
    assert found["source"] == "sent"
    # Frames of AWS are shown as text.
    shown = b"".join(readable([received]))
    assert b"".join(map(bytes_of, found["parts"])) == shown
    assert found["size"] == len(received)
    assert found["sum"]["text"] == "one two three"
    calls = [(call["name"], json.loads(call["arguments"])) for call in found["sum"]["calls"]]
    assert calls == ([("get_secret", {"name": "ada"})] if api in CALLING else [])
    kinds = [event["kind"] for part in found["parts"] for event in part["events"]]
    assert kinds.count("TextDelta") >= 3
    assert ("ToolStart" in kinds) == (api in CALLING)
    assert found["sum"]["problems"] == []
    # All were written at once, and that is when they left.
    assert len({part["left"] for part in found["parts"]}) == 1
    assert found["gone_after"] is None


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_an_answer_that_is_not_streamed(serve: Callable[..., Served], api: str) -> None:
    client = PROTOCOLS[api].client
    if not PROTOCOLS.addresses[api].any_path:
        served = serve(SCENARIOS)
        body = first_body(PROTOCOLS[api], "m", "hello")
        body |= {"stream": False} if "stream" in body else {}
        path = client.path_of("m", stream=False)
        sent = served.http.post(path, json=body, headers={**KEYS, **client.headers})
        found = answer_of(served)["answer"]
        assert not found["streamed"]
        assert b"".join(map(bytes_of, found["parts"])) == sent.content
        assert found["sum"]["text"] == "one two three"


def test_times(serve: Callable[..., Served]) -> None:
    """Each part has when it was due and when it left, which is not before."""
    served = serve(SCENARIOS)
    ask(served, "timed")
    found = answer_of(served)["answer"]
    assert found["timed"]
    due = [part["at"] for part in found["parts"]]
    assert due == sorted(due)
    assert max(due) >= 4000
    for part in found["parts"]:
        assert part["left"] is not None
        assert part["left"] >= part["at"] - 1000  # timers round to milliseconds


def test_a_fault(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIOS)
    with pytest.raises(Exception, match=r"(?i)reset|peer"):
        ask(served, "broken")
    found = answer_of(served)["answer"]
    assert (found["ending"], found["fault"]) == ("reset", "cut:after=2 events,end=reset")
    assert found["struck_after"] == sum(part["size"] for part in found["parts"])


def test_a_quirk_is_marked_where_it_changed_the_stream(serve: Callable[..., Served]) -> None:
    served = serve(SCENARIOS)
    ask(served, "odd")
    parts = answer_of(served)["answer"]["parts"]
    marked = [part for part in parts if part["quirk"]]
    assert 0 < len(marked) < len(parts)
    assert {part["quirk"] for part in marked} == {"sse-comments"}
    assert all(bytes_of(part).find(b":") >= 0 for part in marked)


@pytest.mark.slow
def test_what_is_not_kept_is_made_again(serve: Callable[..., Served]) -> None:
    """The server keeps some answers; older ones have the same bytes, and say so."""
    served = serve(SCENARIOS)
    received = ask(served, "hello").content
    for _ in range(KEEPS):
        ask(served, "timed nothing fits")
    found = answer_of(served)["answer"]
    assert found["source"] == "made again"
    assert "not known" in found["note"]
    assert b"".join(map(bytes_of, found["parts"])) == received
    assert {part["left"] for part in found["parts"]} == {None}


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_play(serve: Callable[..., Served], api: str) -> None:
    served = serve(SCENARIOS)
    found = served.http.get(f"/_mockllm/ui/play/hello?api={api}&turn=0").json()
    assert found["source"] == "made again"
    assert found["sum"]["text"] == "one two three"
    assert served.http.get("/_mockllm/journal").json()["exchanges"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("play/hello?api=nothing", 400),
        ("play/hello?turn=7", 404),
        ("play/hello?turn=x", 400),
        ("play/nothing", 404),
        ("request/default/7", 404),
        ("request/default/x", 404),
        ("request/nothing/1", 404),
        ("request/default/1", 404),
        ("recording", 404),
    ],
)
def test_what_is_not_there(serve: Callable[..., Served], path: str, status: int) -> None:
    answer = serve(SCENARIOS).http.get(f"/_mockllm/ui/{path}")
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


# Laws


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_visible_lines_lose_nothing(writes: list[bytes]) -> None:
    """What is shown of bytes can be read back."""
    data = b""
    for line in visible_lines(writes):
        for piece in line:
            if piece.kind == "end":
                data += {"CR LF": b"\r\n", "CR": b"\r", "LF": b"\n"}[piece.text]
            elif piece.kind == "escape":
                data += (
                    piece.text.encode()
                    .decode("unicode_escape")
                    .encode(
                        "latin-1"
                        if piece.text.startswith("\\x") and _is_byte(piece.note)
                        else "utf-8"
                    )
                )
            elif piece.kind != "cut":
                data += piece.text.encode()
    assert data == b"".join(writes)


def _is_byte(note: str) -> bool:
    return note == "a byte that is not UTF-8"


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.data(),
)
def test_each_part_left_with_the_write_that_completed_it(
    sizes: list[int], data: st.DataObject
) -> None:
    total = sum(sizes)
    cuts = sorted(data.draw(st.sets(st.integers(1, total), max_size=6)))
    marks = [value for n, cut in enumerate(cuts) for value in (float(cut), float(n))]
    found = list(sent_times([b"x" * size for size in sizes], marks, all_at=None))
    end = 0
    for size, left in zip(sizes, found, strict=True):
        end += size
        expected = next((n for n, cut in enumerate(cuts) if cut >= end), None)
        assert left == (None if expected is None else expected * 1_000_000)


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=8), st.sampled_from([*PROTOCOLS]))
def test_any_bytes_have_a_view(parts: list[bytes], api: str) -> None:
    """Bytes that are no stream at all are shown, with what is wrong with them."""
    answer = bytes_answer(200, (), [TimedBytes(0, part) for part in parts], streamed=True)
    found = stream_json(ShownAnswer(answer), PROTOCOLS[api])
    json.dumps(found)
    assert [part["size"] for part in found["parts"]] == list(map(len, parts))


def test_the_kept_answers_are_bounded() -> None:
    kept = SentAnswers()
    answer = bytes_answer(200, (), [], streamed=True)
    exchanges = [journal_entry("POST", "/", {}, b"", duration=n / 8) for n in range(KEEPS + 10)]
    for exchange in exchanges:
        kept.add(exchange, answer)
    assert kept.find(exchanges[9]) is None
    assert kept.find(exchanges[10]) is not None
