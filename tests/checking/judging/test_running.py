"""How a client is run: what it gets, what its exceptions become, and when it cannot be run."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from mockllm.checking import Case, Outcome, Policy, Tool, examine, examine_bodies, examine_client
from mockllm.checking.cases.build import case
from mockllm.checking.reports.check import report_text
from mockllm.core.errors import ProbeError
from mockllm.play.quirks.samples import CALL, TEXT, TEXT_AND_CALL
from mockllm.play.replay.loading import loads
from tests.checking.naive import Naive

CASES = [case(TEXT, "chat"), case(TEXT_AND_CALL, "chat")]


# A client that cannot be run


def _import_missing() -> Any:
    return importlib.import_module("a_module_that_is_missing")


class ImportsInItsConstructor(Naive):
    def __init__(self) -> None:
        _import_missing()


class ImportsWhenFed(Naive):
    def feed(self, chunk: Any, event: str | None = None) -> Any:
        _import_missing()


class ImportsAtTheEnd(Naive):
    def outcome(self) -> Outcome:
        return _import_missing()  # type: ignore[no-any-return]  # it raises


class HasAFailingConstructor(Naive):
    def __init__(self) -> None:
        raise KeyError("API_KEY")


class HasAFailingOffer(Naive):
    def offer(self, tools: tuple[Tool, ...]) -> None:
        raise TypeError("tools have no schema")


class HasNoFeed:
    def outcome(self) -> Outcome:
        return Outcome()


class ReturnsAMapping(Naive):
    def outcome(self) -> Any:
        return {"text": "Hello"}


class ReturnsNothing(Naive):
    def outcome(self) -> Any:
        return None


CANNOT_BE_RUN = [
    (ImportsInItsConstructor, "cannot be run: ModuleNotFoundError: .*a_module_that_is_missing"),
    (ImportsWhenFed, "cannot be run: ModuleNotFoundError: .*a_module_that_is_missing"),
    (ImportsAtTheEnd, "cannot be run: ModuleNotFoundError: .*a_module_that_is_missing"),
    (HasAFailingConstructor, "cannot be run: KeyError: 'API_KEY' .*in __init__"),
    (HasAFailingOffer, "cannot be run: TypeError: tools have no schema .*in offer"),
    (HasNoFeed, "needs the methods feed and outcome; .*HasNoFeed.* has no feed"),
    (ReturnsAMapping, r"outcome\(\) must return a mockllm.checking.Outcome, and returned {'text'"),
    (ReturnsNothing, r"and returned None; Outcome.of\(...\) makes one"),
]


@pytest.mark.parametrize(("client", "message"), CANNOT_BE_RUN)
def test_a_client_that_cannot_be_run_is_one_error(client: Any, message: str) -> None:
    """The error has the cause and the line that raised it. No case is judged."""
    with pytest.raises(ProbeError, match=message):
        examine(client, CASES)


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (lambda *_: _import_missing(), "ModuleNotFoundError"),
        (lambda *_: {"text": "Hello"}, r"run\(\) must return a mockllm.checking.Outcome"),
    ],
)
def test_a_whole_client_that_cannot_be_run_is_one_error(client: Any, message: str) -> None:
    """A missing import, or a result that is no outcome, shows nothing about a stream."""
    with pytest.raises(ProbeError, match=message):
        examine_client(client, lambda _: "http://127.0.0.1", CASES)


def test_a_reader_of_bodies_that_cannot_be_run_is_one_error() -> None:
    """The same is true of the reader of answers that are not streamed."""
    with pytest.raises(ProbeError, match=r"body\(\) must return a mockllm.checking.Outcome"):
        examine_bodies(lambda _: None, CASES)  # type: ignore[arg-type, return-value]


# Exceptions


class RaisesAtItsThirdChunk(Naive):
    """Raises an exception of its own at the third chunk."""

    fed = 0

    def feed(self, chunk: Any, event: str | None = None) -> Any:
        self.fed += 1
        if self.fed == 3:
            raise IndexError("the third chunk")
        return super().feed(chunk, event)


def test_the_exception_of_the_client_is_the_first_line() -> None:
    """A report begins with the exception and the line that raised it."""
    report = examine(RaisesAtItsThirdChunk, CASES[:1])
    (failure,) = report.failures
    assert report_text(report).startswith("IndexError: the third chunk (test_running.py:")
    assert "in feed)" in report_text(report).splitlines()[0]
    assert str(failure).startswith("IndexError: the third chunk (test_running.py:")
    assert failure.at == 2


def test_the_event_that_raised_is_marked() -> None:
    """The stream in a report has a mark at the event that the client raised at."""
    lines = report_text(examine(RaisesAtItsThirdChunk, CASES[:1])).splitlines()
    stream = lines[lines.index("  the stream:") + 1 :]
    assert [line.startswith("    > ") for line in stream[:4]] == [False, False, True, False]


class RaisesWithoutAMessage(Naive):
    """Raises an exception whose message cannot be read."""

    class BrokenError(ValueError):
        def __str__(self) -> str:
            raise RuntimeError("no message")

    def feed(self, chunk: Any, event: str | None = None) -> Any:
        raise self.BrokenError


def test_an_exception_without_a_message_is_reported() -> None:
    """An exception whose `__str__` raises is an error of the client, too."""
    report = examine(RaisesWithoutAMessage, CASES[:1])
    assert report_text(report).startswith("BrokenError: its message raises RuntimeError")


def test_an_interrupt_ends_the_examination() -> None:
    """Ctrl-C is no error of the client."""

    class Interrupted(Naive):
        def outcome(self) -> Outcome:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine(Interrupted, CASES)


# Offered tools

(WEATHER,) = loads(
    """
    scenario: one-tool
    tools:
      - name: get_weather
        description: The weather of a city.
        parameters: {type: object, properties: {days: {type: integer}}, required: [days]}
    turns:
      - reply: {tool: get_weather, arguments: {days: 3}}
    """
)


def test_offered_tools_have_descriptions_and_schemas() -> None:
    """`offer` gets the tools as their names, with what a client needs to check arguments."""
    offered: list[tuple[Tool, ...]] = []

    class Records(Naive):
        def offer(self, tools: tuple[Tool, ...]) -> None:
            offered.append(tools)

    assert examine(Records, [case(WEATHER, "chat")]).good
    (tool,) = offered[0]
    assert tool == tool.name == "get_weather"
    assert tool.description == "The weather of a city."
    assert tool.parameters["properties"] == {"days": {"type": "integer"}}


def test_tools_are_offered_before_the_first_chunk() -> None:
    """A client knows the tools when the stream begins."""
    calls: list[str] = []

    class Records(Naive):
        def offer(self, tools: tuple[Tool, ...]) -> None:
            calls.append("offer")

        def feed(self, chunk: Any, event: str | None = None) -> Any:
            calls.append("feed")
            return super().feed(chunk, event)

    assert examine(Records, [case(WEATHER, "chat")]).good
    assert calls[0] == "offer"
    assert calls.count("offer") == 1


def test_a_client_may_convert_arguments_by_their_schema() -> None:
    """A client that checks arguments against the schema of `offer` has what it needs."""

    class ChecksTypes(Naive):
        def offer(self, tools: tuple[Tool, ...]) -> None:
            self.schemas = {tool: tool.parameters for tool in tools}

        def outcome(self) -> Outcome:
            outcome = super().outcome()
            for call in outcome.tool_calls:
                types = self.schemas[call.name]["properties"]
                assert all(types[key] == {"type": "integer"} for key in call.arguments)
            return outcome

    assert examine(ChecksTypes, [case(WEATHER, "chat")]).good


# Streams that share state


class SharesCalls(Naive):
    """Keeps the calls of all streams in one mapping."""

    kept: dict[Any, list[str]]

    def __init__(self) -> None:
        super().__init__()
        self.calls = type(self).kept


def test_shared_state_stops_the_judgement() -> None:
    """Where streams disturb each other, no other case is judged, and the report has the reason."""
    fresh = type("Fresh", (SharesCalls,), {"kept": {}})
    first, other = case(CALL, "chat"), case(TEXT_AND_CALL, "chat")
    quirk = case(CALL, "chat", quirk="chat-name-repeated", plain=first)
    report = examine(fresh, [first, other, quirk])
    assert set(report.broken()) == {"stage-empties"}
    assert report.stopped
    assert quirk.name not in {result.case.name for result in report.results}
    assert "not judged: the other cases, since streams share state" in report_text(report)


# Usage


@pytest.mark.parametrize(
    ("policy", "requests", "good"),
    [
        (None, False, True),
        (None, True, False),
        (True, False, False),
        (False, True, True),
    ],
)
def test_a_whole_client_has_the_usage_that_it_requests(
    policy: bool | None, requests: bool, good: bool
) -> None:
    """Its requests decide, if the policy leaves it open."""

    def client(url: str, found: Case) -> Outcome:
        return Outcome.of(found.expected.text, finish="stop")

    report = examine_client(
        client,
        lambda _: "http://127.0.0.1",
        CASES[:1],
        Policy(usage_requested=policy),
        usage_requested=lambda _: requests,
    )
    assert report.good == good
    assert set(report.broken()) == (set() if good else {"finish-and-usage"})
