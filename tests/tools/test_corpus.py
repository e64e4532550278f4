"""The examination of recorded streams, without the official clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.events import Frame
from mockllm.wire.protocols import PROTOCOLS
from tests.corpus import corpus_recordings, needs_corpus
from tests.tools.streams import chat, recording, responses, write
from tools.comparison import first_difference, normalized
from tools.corpus import (
    Examination,
    Recording,
    examine,
    line,
    main,
    recordings,
    summary,
    totals,
)


def bad() -> Recording:
    """Bytes that are no stream: a line above the limit."""
    return recording("chat", "bad", b"data: " + b"x" * (1 << 25))


@pytest.mark.parametrize("one", [chat("text"), chat("call"), responses()], ids=lambda one: one.name)
def test_a_stream_of_the_service_encodes_again(one) -> None:
    """A stream of the service encodes to equal events, except for generated fields."""
    found = examine(one, sdk=False)
    assert (found.error, found.reencoded, found.raw, found.as_frames) == (None, None, 0, False)


def test_a_stream_that_does_not_encode_again_is_kept_as_frames() -> None:
    """A provider's field is no frame; the first event that differs is reported."""
    found = examine(chat("provider"), sdk=False)
    assert (found.decoded, found.raw, found.as_frames, found.passed) == (True, 0, True, True)
    assert found.reencoded == 'event 2: provider: recorded "P", re-encoded nothing'


def test_bytes_that_do_not_decode() -> None:
    """Bytes that are no stream are reported with the error of the decoder."""
    found = examine(bad(), sdk=False)
    assert not found.decoded
    assert not found.passed
    assert found.as_frames
    assert "NOT DECODED (" in line(found)


def test_an_unknown_api() -> None:
    """The error for an unknown API lists the known ones."""
    found = examine(recording("telegraph", "x", b""), sdk=False)
    assert found.error is not None
    assert found.error.startswith("no protocol is called 'telegraph', only chat, ")


def test_the_line_of_a_stream() -> None:
    """The line of a stream has every verdict."""
    found = Examination("chat", "x", "h", 3, 1, None, "differs", "way", "text: no", "event 1: y")
    assert line(found) == (
        "chat/x h: 3 frames, 1 raw, decoded, SDK equal: NO [way] (text: no), "
        "re-encodes equal: no (event 1: y), kept as frames: yes"
    )


def test_totals_and_their_line() -> None:
    """Totals count each verdict."""
    all_ = [
        Examination("chat", "a", "h", sdk="equal"),
        Examination("chat", "b", "h", sdk="excused", reencoded="event 1: x"),
        Examination("chat", "c", "h", error="e"),
    ]
    assert summary("chat", totals(all_)) == (
        "chat: 3 streams, 2 decoded, 1 of 2 equal to the SDK and 1 but for the SDK's own faults, "
        "1 re-encode to equal events, 2 kept as frames"
    )


def test_the_command_prints_a_line_a_stream(tmp_path: Path, capsys) -> None:
    """The exit code is 0 if all streams decode, even if some are kept as frames."""
    for one in (chat("text"), chat("provider"), responses()):
        write(tmp_path, one)
    assert main([str(tmp_path), "--no-sdk"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [text.split(" ")[0] for text in printed] == [
        *("chat/provider", "chat/text", "responses/text", ""),
        *("chat:", "responses:", "all:"),
    ]


def test_the_command_prints_json(tmp_path: Path, capsys) -> None:
    """`--json` prints an object; the exit code is 1 if a stream does not decode."""
    for one in (chat("text"), bad()):
        write(tmp_path, one)
    assert main([str(tmp_path), "--no-sdk", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [
        (stream["name"], stream["decoded"], stream["kept_as_frames"])
        for stream in report["streams"]
    ] == [
        ("bad", False, True),
        ("text", True, False),
    ]
    assert report["totals"]["chat"] == report["all"]
    assert (report["all"]["streams"], report["all"]["decoded"]) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (None, "", "no <api>/<name>/response.sse below"),
        ("request.json", "[]", "must hold a JSON object, got list"),
        ("meta.json", "{", "must be a file with a JSON object"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys, name: str | None, content: str, message: str) -> None:
    """A directory without recordings, or with broken ones, is an error with exit code 2."""
    if name is not None:
        write(tmp_path, chat("text"))
        (tmp_path / "chat" / "text" / name).write_text(content)
    assert main([str(tmp_path), "--no-sdk"]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(UsageError):
        recordings(tmp_path)


MASKS = {
    "identity": ("chat", '{"id":"a","created":1,"choices":[]}', '{"id":"b","choices":[]}'),
    "null": ("chat", '{"choices":[{"delta":{"refusal":null}}]}', '{"choices":[{"delta":{}}]}'),
    "zeros of usage": ("chat", '{"usage":{"a":1,"d":{"b":0}}}', '{"usage":{"a":1,"d":{}}}'),
    "configuration": (
        "responses",
        '{"type":"response.created","response":{"status":"s","tools":[1]}}',
        '{"type":"response.created","response":{"status":"s"},"sequence_number":0}',
    ),
    "first form of a signature": (
        "responses",
        '{"type":"response.output_item.added","item":{"encrypted_content":"a"}}',
        '{"type":"response.output_item.added","item":{}}',
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_generated_fields_are_normalised(name: str) -> None:
    """Two events that differ only in generated fields are equal."""
    api, one, other = MASKS[name]
    protocol = PROTOCOLS[api]
    assert normalized(protocol, [Frame(one)]) == normalized(protocol, [Frame(other)])


def test_pings_do_not_count() -> None:
    """Pings are sent by a timer, so they are left out of the comparison."""
    assert normalized(PROTOCOLS["anthropic"], [Frame('{"type":"ping"}')]) == []


DIFFERENCES = [
    ([{"a": [1, 2]}], [{"a": [1, 3]}], "event 1: a[1]: recorded 2, re-encoded 3"),
    ([{}], [], "event 1: recorded {}, re-encoded nothing"),
    ([], ["x"], 'event 1: recorded nothing, re-encoded "x"'),
    (["a", {"b": 1}], ["a", {"b": True}], "event 2: b: recorded 1, re-encoded true"),
    ([{"a": "x" * 99}], [{}], f'event 1: a: recorded "{"x" * 56}..., re-encoded nothing'),
    ([{"a": 1}], [{"a": 1}], None),
]


@pytest.mark.parametrize(("one", "other", "message"), DIFFERENCES)
def test_the_first_difference(one: list, other: list, message: str | None) -> None:
    """The first difference has its path and both values; equal streams have none."""
    assert first_difference(one, other) == message


@needs_corpus
def test_every_recorded_stream_decodes() -> None:
    """Each recording decodes. It encodes to equal events, or is kept as frames with the reason."""
    known = [one for one in corpus_recordings() if one.api in PROTOCOLS]
    assert known
    found = [examine(one, sdk=False) for one in known]
    assert [one.error for one in found if not one.decoded] == []
    assert all(one.as_frames == (one.reencoded is not None) for one in found)
    sums = totals(found)
    assert sums.decoded == sums.streams == sums.reencoded + sums.as_frames


@needs_corpus
def test_openai_streams_encode_again() -> None:
    """Chat Completions streams of OpenAI itself encode to equal events."""
    own = [o for o in corpus_recordings() if (o.api, o.host) == ("chat", "api.openai.com")]
    assert own
    kept = [one for one in (examine(one, sdk=False) for one in own) if one.as_frames]
    # The only exception is a moderation result after the finish, which is kept as a frame.
    assert all(one.raw for one in kept)
    assert len(kept) <= len(own) // 20
