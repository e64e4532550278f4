"""A mistake has one name, whatever brought it to light; and a right client is not accused.

Each accumulator below has one mistake that real clients have, and plays all small cases of the kit.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.chat import ChatAccumulator
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Case, Delta, Outcome, Policy, Tool, Usage, cases, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Level
from mockllm.checking.material import kit_scenarios
from mockllm.play.quirks.samples import CALL, TEXT, TEXT_AND_CALL, TWO_CALLS, ZERO
from mockllm.play.replay.loading import load, shipped_scenarios
from tests.checking.naive import Naive

SKIP = Policy(malformed="skip")
KEEP = Policy(malformed="keep")
EVERY_CHUNK = Policy(intermediate=True)
LARGE = ("hundred-tools", "long-text", "unicode")


@cache
def _all_cases(level: Level) -> list[Case]:
    """The kit's own cases for Chat Completions, with one variation each."""
    found = cases("chat", [], variations=1, level=level)
    return [one for one in found if one.answer.size < 100_000]


def _broken(
    client: Callable[[], Any], policy: Policy | None = None, level: Level = "payloads"
) -> set[str]:
    return set(examine(client, _all_cases(level), policy, level=level).broken())


# Decoded events


class Skips(ChatAccumulator):
    """Leaves out calls with malformed arguments."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")


class OverwritesArguments(Skips):
    """Keeps the last fragment of the arguments only."""

    def _fragment(self, entry: Any) -> None:
        super()._fragment(entry)
        last = (entry.get("function") or {}).get("arguments")
        if isinstance(last, str) and last and self._last is not None:
            self._last.arguments = last


class KeysByPosition(Skips):
    """Finds calls by their position in the list of a chunk, and not by their index."""

    def _delta(self, delta: Any) -> None:
        entries = delta.get("tool_calls")
        if isinstance(entries, list):
            numbered = [{**entry, "index": number} for number, entry in enumerate(entries)]
            delta = {**delta, "tool_calls": numbered}
        super()._delta(delta)


class LooksUpTools(ChatAccumulator):
    """Looks up the tool of each call, and raises `KeyError` if it was not offered."""

    def offer(self, tools: tuple[Tool, ...]) -> None:
        self.tools = {str(tool): tool for tool in tools}

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        for call in outcome.tool_calls:
            self.tools[call.name]
        return outcome


class AddsNull(ChatAccumulator):
    """Raises `TypeError` where the arguments are null."""

    def _fragment(self, entry: Any) -> None:
        arguments = (entry.get("function") or {}).get("arguments", "")
        if not isinstance(arguments, dict):
            _ = "" + arguments
        super()._fragment(entry)


class ParsesNothing(Naive):
    """Parses the arguments of every call, also where none were sent."""

    sent: str | None = None

    def entry(self, entry: dict[str, Any]) -> None:
        super().entry(entry)
        arguments = (entry.get("function") or {}).get("arguments")
        self.sent = self.sent if arguments is None else arguments

    def outcome(self) -> Outcome:
        if self.finish and not self.sent:
            json.loads(self.sent)  # type: ignore[arg-type]  # the mistake: it may be None
        return super().outcome()


class ValidationError(ValueError):
    """What a typed model of the input raises."""


class ForbidsOtherFields(ChatAccumulator):
    """Has a model of chunks that forbids fields which it does not know."""

    KNOWN = frozenset(
        ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "error")
    )

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        other = sorted(set(payload) - self.KNOWN)
        if other:
            message = f"1 validation error for Chunk\n{other[0]}\n  Extra inputs are not permitted"
            raise ValidationError(message)
        return super().feed(payload, event)


class RequiresDeltas(ChatAccumulator):
    """Has a model of chunks in which a delta is never null."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        for choice in payload.get("choices") or []:
            if choice.get("delta") is None:
                message = "1 validation error for Chunk\nchoices.0.delta\n  Input should be a valid"
                raise ValidationError(f"{message} dictionary [input_value=None]")
        return super().feed(payload, event)


UNKNOWN_TOOLS = [Policy(unknown_tool="skip"), Policy(unknown_tool="error")]

PAYLOAD_NAMES = [
    (OverwritesArguments, SKIP, {"arguments-concatenate"}),
    # A position does not show the order of calls that arrive in turns, either.
    (KeysByPosition, SKIP, {"arguments-concatenate", "order-by-index"}),
    *((LooksUpTools, policy, {"unknown-tool"}) for policy in UNKNOWN_TOOLS),
    (AddsNull, None, {"null-tolerant"}),
    (ForbidsOtherFields, None, {"unknown-event"}),
    (RequiresDeltas, None, {"null-tolerant"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("client", "policy", "names"), PAYLOAD_NAMES)
def test_a_mistake_has_the_right_name(
    client: Callable[[], Any], policy: Policy | None, names: set[str]
) -> None:
    """Arguments that are put together wrongly are not `surface-once`; a `KeyError` of an unknown
    tool is not `null-tolerant`; an input model that fails is not `arguments-concatenate`."""
    assert _broken(client, policy) == names


@pytest.mark.parametrize(
    "quirk", ["chat-args-null-only", "chat-args-null-only:absent", "chat-args-empty-zero"]
)
def test_parsing_no_arguments_breaks_zero_arguments(quirk: str) -> None:
    """`json.loads` of null or of an empty text is `zero-arguments`, not `null-tolerant`."""
    found = case(ZERO, "chat", quirk=quirk)
    assert found.plain is not None
    assert set(examine(ParsesNothing, [found.plain, found]).broken()) == {"zero-arguments"}


@pytest.mark.slow
def test_the_reference_is_right_under_every_policy() -> None:
    """The same cases accuse a right accumulator of nothing."""
    assert _broken(ChatAccumulator) == set()
    assert _broken(ChatAccumulator, EVERY_CHUNK) == set()
    assert _broken(Skips, SKIP) == set()
    assert _broken(lambda: ChatAccumulator(malformed="keep"), KEEP) == set()
    assert _broken(lambda: ChatAccumulator(malformed="fail"), Policy(malformed="fail")) == set()


# Bytes


class Bytes(ReferenceBytes):
    """Reads the bytes of Chat Completions."""

    def __init__(self) -> None:
        super().__init__("chat")


class KeepsTheByteOrderMark(Bytes):
    """Does not remove a byte order mark, so that the first line has an unknown field."""

    def __init__(self) -> None:
        super().__init__()
        self._lines._started = True


class DecodesEachRead(Bytes):
    """Decodes each read by itself, and replaces the halves of a character that was cut."""

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data.decode(errors="replace").encode())


class DecodesEachReadStrictly(Bytes):
    """Decodes each read by itself, and raises where a character was cut."""

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data.decode().encode())


class ParsesTheEndMarker(Bytes):
    """Parses `[DONE]` as JSON, and fails."""

    def _dispatch(self) -> Delta | None:
        if self._data == ["[DONE]"]:
            raise json.JSONDecodeError("Expecting value", "[DONE]", 1)
        return super()._dispatch()


class FeedLines:
    """Splits lines at LF alone, which leaves CR in the data."""

    size = 0

    def __init__(self, end: str = "") -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._end = end

    def feed(self, data: bytes) -> list[str]:
        *lines, self._text = (self._text + self._utf8.decode(data)).split("\n")
        return [line.removesuffix(self._end) if self._end else line for line in lines]

    def rest(self) -> str:
        return self._text


class SplitsAtLineFeeds(Bytes):
    """Ends lines at LF alone."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = FeedLines()  # type: ignore[assignment]  # it has the same methods


class SplitsAtLineFeedsAndPairs(Bytes):
    """Ends lines at LF and CRLF, but not at CR."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = FeedLines("\r")  # type: ignore[assignment]  # it has the same methods


class RequiresASpace(Bytes):
    """Reads `data: `, and passes over `data:`."""

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data.replace(b"data:{", b"other:{"))


BYTE_MISTAKES = [
    (KeepsTheByteOrderMark, "framing-read"),
    (ParsesTheEndMarker, "framing-read"),
    (SplitsAtLineFeeds, "framing-read"),
    (SplitsAtLineFeedsAndPairs, "framing-read"),
    (RequiresASpace, "framing-read"),
    (DecodesEachRead, "chunking-free"),
    (DecodesEachReadStrictly, "chunking-free"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("client", "invariant"), BYTE_MISTAKES)
def test_a_mistake_in_reading_bytes_has_one_name(client: Callable[[], Any], invariant: str) -> None:
    """A byte order mark, a line end, a space and `[DONE]` are framing; a character that is wrong
    only where it was cut depends on the cuts. Neither is an invariant of names or calls."""
    assert _broken(client, level="bytes") == {invariant}


class _Raises(REFERENCES["anthropic"]):  # type: ignore[misc]  # a class of a table
    """Reads a key that the events have which it knows."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.look(payload)
        delta: Delta | None = super().feed(payload, event)
        return delta

    def look(self, payload: Any) -> None:
        raise NotImplementedError


class RaisesAtPing(_Raises):
    """Expects an index in every event but those of the message."""

    def look(self, payload: Any) -> None:
        if payload.get("type") not in ("message_start", "message_delta", "message_stop", None):
            assert payload["type"] == "error" or payload["index"] >= 0


class ReportsPing(_Raises):
    """Reports an event that it does not know, with an error of its own."""

    def look(self, payload: Any) -> None:
        if payload.get("type") == "ping":
            raise ValueError("unexpected event ping")


class RaisesAtCitations(_Raises):
    """Takes a delta that is no JSON, thinking or signature for text."""

    def look(self, payload: Any) -> None:
        if (payload.get("delta") or {}).get("type") == "citations_delta":
            payload["delta"]["text"].strip()


class RaisesAtGrounding(REFERENCES["gemini"]):  # type: ignore[misc]  # a class of a table
    """Reads a part of the metadata of searches that they need not have."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        for candidate in payload.get("candidates") or ():
            if candidate.get("groundingMetadata") is not None:
                candidate["groundingMetadata"]["retrievalMetadata"].get("googleSearch")
        delta: Delta | None = super().feed(payload, event)
        return delta


@pytest.mark.parametrize(
    ("api", "client"),
    [
        ("anthropic", RaisesAtPing),
        ("anthropic", ReportsPing),
        ("anthropic", RaisesAtCitations),
        ("gemini", RaisesAtGrounding),
    ],
)
def test_a_client_that_raises_at_what_adds_nothing_breaks_unknown_event(
    api: Any, client: Callable[[], Any]
) -> None:
    """`ping`, `citations_delta` and `groundingMetadata` may be passed over, whatever the exception
    is and wherever in shipped scenarios they come."""
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LARGE]
    found = cases(api, scenarios, variations=0, quirks=False, level="payloads")
    kit = [case(each, api) for each in kit_scenarios(api)]
    assert set(examine(client, [*found, *kit]).broken()) == {"unknown-event"}


# No accusation of a right client


class KeepsWhatItGets(Naive):
    """Joins all fragments, and leaves out or keeps calls whose arguments do not parse.

    Args:
        malformed: `skip` or `keep`.
    """

    def __init__(self, malformed: str) -> None:
        super().__init__()
        self.malformed = malformed

    def outcome(self) -> Outcome:
        calls: list[tuple[str, str, Any]] = []
        for id, name, arguments in self.calls.values():
            try:
                calls.append((id, name, json.loads(arguments or "{}")))
            except ValueError:
                if self.malformed == "keep":
                    calls.append((id, name, arguments))
        return Outcome.of(self.text, tool_calls=calls, finish=self.finish, usage=self.usage)


@pytest.mark.parametrize("sample", [CALL, TWO_CALLS, TEXT_AND_CALL], ids=lambda one: one.name)
@pytest.mark.parametrize("malformed", ["skip", "keep"])
def test_repeated_arguments_may_be_left_out_or_kept_as_text(malformed: str, sample: Any) -> None:
    """Arguments that are sent again at their end are malformed for a client that joins fragments;
    it deals with them under its policy."""
    found = case(sample, "chat", quirk="chat-args-repeated-at-end")
    assert found.plain is not None
    policy = SKIP if malformed == "skip" else KEEP
    report = examine(lambda: KeepsWhatItGets(malformed), [found.plain, found], policy)
    assert report.good
    assert report.verdicts == {"right": 1, "tolerated": 1}


class ReplacesByDone:
    """Reads text in Responses: a `done` value replaces what was accumulated."""

    def __init__(self) -> None:
        self.text = ""
        self.finish: str | None = None
        self.usage: Usage | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta:
        match payload["type"]:
            case "response.output_text.delta":
                self.text += payload["delta"]
                return Delta(payload["delta"])
            case "response.output_text.done":
                self.text = payload["text"]
            case "response.completed":
                response = payload["response"]
                usage = response["usage"]
                self.finish = response["status"]
                self.usage = Usage(usage["input_tokens"], usage["output_tokens"])
                parts = [part for item in response["output"] for part in item["content"]]
                self.text = "".join(part["text"] for part in parts)
        return Delta()

    def outcome(self) -> Outcome:
        return Outcome.of(self.text, finish=self.finish, usage=self.usage)


class BeginsAgain(REFERENCES["anthropic"]):  # type: ignore[misc]  # a class of a table
    """Begins a new message at every `message_start`."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "message_start":
            self.__init__()
        delta: Delta | None = super().feed(payload, event)
        return delta


TAKES_BACK = [
    ("responses", TEXT, "resp-delta-after-done:late", ReplacesByDone),
    ("anthropic", TEXT, "anth-message-start-twice:in-block", BeginsAgain),
    ("anthropic", TEXT_AND_CALL, "anth-message-start-twice:in-block", BeginsAgain),
]


@pytest.mark.parametrize(("api", "sample", "quirk", "client"), TAKES_BACK)
def test_text_may_shrink_where_the_stream_takes_it_back(
    api: Any, sample: Any, quirk: str, client: Callable[[], Any]
) -> None:
    """Where the stream itself replaces text or begins again, only the end decides."""
    found = case(sample, api, quirk=quirk)
    assert found.plain is not None
    assert examine(client, [found.plain, found], EVERY_CHUNK).good


class DiscardsAnUnfinishedEvent(Bytes):
    """Discards an event without a blank line after it (WHATWG HTML, 9.2.6)."""

    def close(self) -> None:
        self._data = []
        self._lines = FeedLines()  # type: ignore[assignment]  # without a rest
        super().close()


@pytest.mark.parametrize("client", [Bytes, DiscardsAnUnfinishedEvent])
@pytest.mark.parametrize("sample", [TEXT, CALL], ids=lambda one: one.name)
def test_an_event_without_a_blank_line_may_be_read_or_discarded(
    client: Callable[[], Any], sample: Any
) -> None:
    """A reader that follows the specification loses the last event, and is right."""
    found = case(sample, "chat", quirk="sse-no-final-blank")
    assert found.plain is not None
    assert examine(client, [found.plain, found], level="bytes").good


@pytest.mark.slow
def test_a_reader_that_discards_unfinished_events_is_right_everywhere() -> None:
    """No other case accuses a reader that follows the specification."""
    assert _broken(DiscardsAnUnfinishedEvent, level="bytes") == set()


class DecodesEachChunk(ReferenceBytes):
    """Decodes each read by itself, so that characters that are cut become U+FFFD."""

    def feed(self, data: bytes) -> Any:
        return super().feed(data.decode(errors="replace").encode())


def test_a_scenario_that_cuts_itself_is_told_from_its_framing() -> None:
    """The whole form of such a scenario is right, and has ids of its own, as its name differs."""
    (unicode,) = (one for one in load([shipped_scenarios()]) if one.name == "unicode")
    found = list(cases("chat", [unicode], variations=0, quirks=False, level="bytes"))
    report = examine(lambda: DecodesEachChunk("chat"), found, level="bytes")
    assert set(report.broken()) == {"chunking-free"}
