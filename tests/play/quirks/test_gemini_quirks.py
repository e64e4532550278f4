"""The bytes of the quirks of Gemini, on the samples that show them."""

from __future__ import annotations

import json
from typing import Any

import mockllm.play.quirks as table
from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.play.quirks.gemini import QUIRKS
from mockllm.play.quirks.samples import (
    CALL,
    INTERLEAVED,
    REASONING,
    TEXT_AND_TWO_CALLS,
    TWO_CALLS,
    ZERO,
)
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.encoding import stream
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.model import Scenario, Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, events, frames, plain, play

Json = dict[str, Any]


def sent(name: str, scenario: Scenario | None = None) -> HttpAnswer:
    """The answer to a quirk's sample, or a scenario, with a quirk named `NAME` or
    `NAME:VARIANT`."""
    return play(*table.find(name), "gemini", scenario)


def body(name: str) -> str:
    """The text of a quirk's sample."""
    return b"".join(sent(name).data).decode()


def candidates(name: str, scenario: Scenario | None = None) -> list[Json]:
    """The only candidate of each chunk; of a chunk without candidates, its other fields."""
    return [
        chunk["candidates"][0] if "candidates" in chunk else _without_ids(chunk)
        for chunk in events(sent(name, scenario))
    ]


def _without_ids(chunk: Json) -> Json:
    return {k: v for k, v in chunk.items() if k not in ("responseId", "modelVersion")}


def candidate(*parts: Json, **more: Any) -> Json:
    return {"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}


def call(name: str, **fields: Any) -> Json:
    return {"functionCall": {"name": name, **fields}}


PARIS = call("get_weather", args={"city": "Paris"})
HEL, LO, NOTHING = {"text": "Hel"}, {"text": "lo"}, {"text": ""}
END = candidate(NOTHING, finishReason="STOP")
USAGE: Json = {
    "promptTokenCount": 12,
    "candidatesTokenCount": 7,
    "totalTokenCount": 19,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
    "serviceTier": "standard",
}


# Calls


def test_args_absent() -> None:
    """A call without arguments has no `args`, or null; other calls keep theirs."""
    assert candidates("gem-args-absent") == [candidate(call("list_issues")), END]
    assert candidates("gem-args-absent:null") == [candidate(call("list_issues", args=None)), END]
    assert sent("gem-args-absent", CALL).data == plain(CALL, "gemini").data


def test_changed_chunks_keep_googles_spacing() -> None:
    """A chunk that changed has the spaces that the others have."""
    first = body("gem-args-absent").split("\r\n")[0]
    begin = (
        'data: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "list_issues"}}]'
    )
    assert first.startswith(begin + ',"role": "model"},"index": 0}],"usageMetadata": {')


def test_same_name_without_ids() -> None:
    """Calls of one tool are in one chunk, with the usage of the last."""
    rome = call("get_weather", args={"city": "Rome"})
    assert candidates("gem-same-name-no-id") == [candidate(PARIS, rome), END]
    assert events(sent("gem-same-name-no-id"))[0]["usageMetadata"] == USAGE
    assert sent("gem-same-name-no-id", TWO_CALLS).data == plain(TWO_CALLS, "gemini").data


def test_ids_are_removed() -> None:
    """The quirk removes ids where the API sends them."""
    assert '"id": "call_A1"' in _stream_of_gemini_3()
    assert '"id"' not in _stream_of_gemini_3("gem-same-name-no-id")


def _stream_of_gemini_3(*quirks: str) -> str:
    protocol = PROTOCOLS["gemini"]
    target = client_target(protocol, "gemini-3-pro")
    request = protocol.parse(first_body(protocol, "gemini-3-pro", "Hello"), target, True)
    reply = Reply("seed", "0" * 40, "gemini-3-pro", protocol.options(request))
    turn = resolve(TWO_CALLS, 0, "gemini")
    timed = stream((turn,), protocol, reply, Wire(quirks=quirks))
    return b"".join(part.data for part in timed).decode()


def test_stop_for_tools() -> None:
    """Empty texts follow the call, the last with `STOP`; or the call itself has `STOP`."""
    assert candidates("gem-stop-for-tools") == [candidate(PARIS), candidate(NOTHING), END]
    assert candidates("gem-stop-for-tools:with-call") == [candidate(PARIS, finishReason="STOP")]
    both = candidates("gem-stop-for-tools:with-call", TWO_CALLS)
    assert both == [
        candidate(PARIS),
        candidate(call("get_time", args={"tz": "CET"}), finishReason="STOP"),
    ]


def test_finish_with_a_signature_stays() -> None:
    """The last chunk is not removed where it has more than the finish."""
    quirk = "gem-stop-for-tools:with-call"
    assert sent(quirk, REASONING).data == plain(REASONING, "gemini").data


def _partial(*arguments: Json) -> Json:
    return {"functionCall": {"partialArgs": list(arguments), "willContinue": True}}


def test_partial_args() -> None:
    """A call has its name first, then its arguments in fragments, and ends in the chunk with
    `STOP`."""
    assert candidates("gem-partial-args") == [
        candidate(call("get_weather", willContinue=True)),
        candidate(_partial({"jsonPath": "$.city", "stringValue": "Pa", "willContinue": True})),
        candidate(_partial({"jsonPath": "$.city", "stringValue": "ris"})),
        candidate({"functionCall": {}}, finishReason="STOP"),
    ]


def test_partial_args_of_several_calls() -> None:
    """Each call ends before the next one begins; one without arguments stays whole."""
    chunks = candidates("gem-partial-args", INTERLEAVED)
    ends = [index for index, chunk in enumerate(chunks) if chunk["content"]["parts"] == [_END]]
    assert ends == [3, 7]
    assert chunks[4] == candidate(call("get_time", willContinue=True))
    assert sent("gem-partial-args", ZERO).data == plain(ZERO, "gemini").data


_END: Json = {"functionCall": {}}


def test_args_string() -> None:
    """Arguments are a string with JSON in it."""
    text = call("get_weather", args='{"city":"Paris"}')
    assert candidates("gem-args-string") == [candidate(text), END]
    first = body("gem-args-string").split("\r\n")[0]
    assert '{"name": "get_weather","args": "{\\"city\\":\\"Paris\\"}"}' in first


# The stream


def _lines(quirk: str) -> list[str]:
    """Each line up to its first 16 characters."""
    text = body(quirk)
    assert text.count("\n") == text.count("\r\n")
    return [line[:16] for line in text.split("\r\n") if line]


def test_strict_framing() -> None:
    """Comments, lines with events or ids, a mark at the end, and no space after the colon."""
    chunk = 'data: {"candidat'
    assert _lines("gem-strict-framing:comments") == [": keep-alive", chunk] * 3
    assert table.find("gem-strict-framing")[1].name == "comments"
    assert _lines("sse-other-fields:event") == ["event: message", chunk] * 3
    assert _lines("gem-strict-framing:id-lines") == ["id: 1", chunk, "id: 2", chunk, "id: 3", chunk]
    assert _lines("gem-strict-framing:done") == [chunk, chunk, chunk, "data: [DONE]"]
    assert _lines("sse-no-space") == ['data:{"candidate'] * 3


def test_raw_error_lines() -> None:
    """An error is sent over several lines, after the first chunk or instead of all."""
    error = (
        "{\n"
        '  "error": {\n'
        '    "code": 503,\n'
        '    "message": "The model is overloaded. Please try again later.",\n'
        '    "status": "UNAVAILABLE"\n'
        "  }\n"
        "}\n"
    )
    before, brace, rest = body("gem-raw-error-lines").partition("\r\n\r\n{\n")
    assert before.startswith('data: {"candidates": [{"content": {"parts": [{"text": "Hel"}]')
    assert before.count("data: ") == 1
    assert brace[4:] + rest == error
    assert body("gem-raw-error-lines:first") == error


def test_raw_error_decodes_as_expected() -> None:
    """Parts before the error stay; usage and finish are removed."""
    turn = Turn((Text(("Hel", "lo")),), "stop", TokenUsage(12, 7))
    _, variant = table.find("gem-raw-error-lines")
    left = expected_turn("gem-raw-error-lines:behind-text", variant, turn)
    assert (left.text, left.finish, left.usage) == ("Hel", None, None)
    assert left.error is not None
    assert (left.error.type, left.error.code) == ("UNAVAILABLE", "503")


def test_array_form() -> None:
    """The chunks are elements of one array, with the content type of JSON."""
    answer = sent("gem-array-form")
    text = b"".join(answer.data).decode()
    assert dict(answer.headers)["content-type"] == "application/json"
    assert [chunk["candidates"][0] for chunk in json.loads(text)] == [
        candidate(HEL),
        candidate(LO),
        END,
    ]
    begin = (
        '[{"candidates": [{"content": {"parts": [{"text": "Hel"}],"role": "model"},"index": 0}],'
    )
    assert text.startswith(begin)
    assert text.count('}\n,\r\n{"candidates": [') == 2
    assert text.endswith('"}\n]')
    assert "data:" not in text
    assert [part[:1] for part in answer.data] == [b"[", b"\n", b"\n"]


def test_array_of_a_cut_stream_stays_open() -> None:
    """The array of an answer without an end has none either."""
    turn = Turn((Text(("Hel",)),))
    protocol = PROTOCOLS["gemini"]
    request = protocol.parse(first_body(protocol, "m", "Hello"), client_target(protocol, "m"), True)
    reply = Reply("seed", "0" * 40, "m", protocol.options(request))
    (written,) = stream((turn,), protocol, reply, Wire(quirks=("gem-array-form",)))
    assert written.data[:2] == b"[{"
    assert written.data[-1:] == b"}"


def test_empty_candidate() -> None:
    """The candidate has the reason only, with as few other fields as services send."""
    no_parts = {"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}
    assert candidates("gem-empty-candidate") == [no_parts]
    (safety,) = candidates("gem-empty-candidate:no-content")
    assert list(safety) == ["finishReason", "index", "safetyRatings"]
    assert (safety["finishReason"], safety["index"]) == ("SAFETY", 0)
    refused = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {
            "promptTokenCount": 12,
            "totalTokenCount": 12,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
            "serviceTier": "standard",
        },
    }
    assert candidates("gem-empty-candidate:no-candidates") == [refused]


def test_chunks_with_usage_alone() -> None:
    """The answer begins with a chunk without candidates, and has one before its end."""
    begin = {**USAGE, "candidatesTokenCount": 4, "totalTokenCount": 16}
    assert candidates("gem-empty-candidate:usage-only") == [
        {"usageMetadata": begin},
        candidate(HEL),
        candidate(LO),
        {"usageMetadata": USAGE},
        END,
    ]


def test_no_finish() -> None:
    """The last chunk is missing, or its reason, or all but the first chunk."""
    assert candidates("gem-no-finish") == [candidate(HEL), candidate(LO)]
    assert candidates("gem-no-finish:no-word") == [
        candidate(HEL),
        candidate(LO),
        candidate(NOTHING),
    ]
    assert candidates("gem-no-finish:cut") == [candidate(HEL)]


def test_cut_behind_a_call() -> None:
    """A call that comes first is all that is left, whole."""
    turn = decoded_turn(sent("gem-no-finish:cut", INTERLEAVED), "gemini")
    assert turn.parts == (ToolCall("get_weather", "", ('{"city":"Paris"}',)),)
    assert turn.finish is None


def test_events_have_no_names() -> None:
    """Google sends none, and no quirk of Gemini adds them."""
    for quirk in QUIRKS:
        for variant in quirk.variants:
            answer = play(quirk, variant, "gemini", TEXT_AND_TWO_CALLS)
            named = any(frame.event for frame in frames(answer))
            assert not named


def test_names_are_those_of_the_group() -> None:
    """The group is complete, and its names are unique."""
    assert sorted(quirk.name.removeprefix("gem-") for quirk in QUIRKS) == [
        "args-absent",
        "args-string",
        "array-form",
        "empty-candidate",
        "no-finish",
        "partial-args",
        "raw-error-lines",
        "same-name-no-id",
        "stop-for-tools",
        "strict-framing",
    ]
