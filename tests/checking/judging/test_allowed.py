"""`Policy.allow` excuses the cases that it names, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mockllm.checking import Case, Delta, Outcome, Policy, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import Variation
from mockllm.checking.judging.examination import allowed_name
from mockllm.checking.reports.check import report_text
from mockllm.core.errors import UsageError
from mockllm.play.quirks.samples import CALL, TEXT, TEXT_AND_CALL
from tests.checking.naive import Naive

PLAIN = case(CALL, "chat")
SPLIT_NAME = case(CALL, "chat", quirk="chat-name-split", plain=PLAIN)
REPEATED_NAME = case(CALL, "chat", quirk="chat-name-repeated", plain=PLAIN)
CASES = [PLAIN, SPLIT_NAME, REPEATED_NAME]


class KeepsTheLastName(Naive):
    """Overwrites the name, so that a name in two fragments loses its beginning."""

    def entry(self, entry: dict[str, Any]) -> None:
        name = (entry.get("function") or {}).get("name")
        super().entry(entry)
        call = self.calls[self.key(entry)]
        call[1] = name or call[1]


class KeepsTheLastNameAndNoId(KeepsTheLastName):
    """Returns calls without their ids, too."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(replace(call, id=None) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


def _allow(*names: str) -> Policy:
    return Policy(allow=dict.fromkeys(names, "a known limit"))


def test_a_quirk_is_excused_by_its_name() -> None:
    """A case with the quirk may fail. The report shows the excuse with its reason."""
    assert set(examine(KeepsTheLastName, CASES).broken()) == {"name-kept"}
    report = examine(KeepsTheLastName, CASES, _allow("chat-name-split"))
    assert report.good
    (excused,) = report.excused
    assert (excused.excuse, excused.judgement.verdict) == ("chat-name-split", "wrong")
    assert "excused: chat-name-split (1 cases): a known limit" in report_text(report)


class SplitsAtLineFeeds:
    """Reads lines that end in a line feed only."""

    def __init__(self) -> None:
        self.data = b""
        self.inner = Naive()

    def feed(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        for line in self.data.split(b"\n"):
            if line.startswith(b"data: {"):
                self.inner.feed(json.loads(line[6:]))
        self.inner.close()

    def outcome(self) -> Outcome:
        return self.inner.outcome()


def test_a_variant_of_a_quirk_is_excused_alone() -> None:
    """`sse-crlf:cr` excuses this variant, and no other one of the quirk."""
    plain = case(TEXT, "chat")
    found = [case(TEXT, "chat", quirk=f"sse-crlf:{name}", plain=plain) for name in ("cr", "mixed")]
    report = examine(SplitsAtLineFeeds, [plain, *found], _allow("sse-crlf:cr"), level="bytes")
    assert [failure.case.quirk for failure in report.failures] == ["sse-crlf:mixed"]
    assert examine(SplitsAtLineFeeds, [plain, *found], _allow("sse-crlf"), level="bytes").good


def test_a_case_is_excused_by_its_name() -> None:
    """The name of a case, as reports have it, excuses this case only."""
    varied = case(CALL, "chat", Variation(split=(1,)), "chat-name-split", plain=PLAIN)
    found = [PLAIN, SPLIT_NAME, varied]
    report = examine(KeepsTheLastName, found, _allow(varied.name))
    assert [failure.case.name for failure in report.failures] == [SPLIT_NAME.name]


def test_an_excuse_covers_no_other_case() -> None:
    """What the client also gets wrong elsewhere is a failure."""
    report = examine(KeepsTheLastNameAndNoId, CASES, _allow("chat-name-split"))
    assert {failure.invariant for failure in report.failures} == {"id-kept"}
    assert all(failure.case.quirk != "chat-name-split" for failure in report.failures)


def test_an_excuse_that_is_not_needed_is_shown() -> None:
    """The report names excuses whose cases are all right, so that they can be removed."""
    report = examine(Naive, [PLAIN, REPEATED_NAME], _allow("chat-name-repeated"))
    assert report.good
    assert report.needless == ("chat-name-repeated",)
    assert "the excuse for chat-name-repeated is not needed: all are right" in report_text(report)


def test_an_excuse_with_one_wrong_case_is_needed() -> None:
    """An excuse is needed as long as one of its cases is wrong."""
    other = case(TEXT_AND_CALL, "chat", quirk="chat-name-split")
    found = [PLAIN, SPLIT_NAME, other]
    report = examine(KeepsTheLastName, found, _allow("chat-name-split"))
    assert report.needless == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "chat-name-splits",
            r"no quirk or case 'chat-name-splits'; did you mean 'chat-name-split'",
        ),
        ("sse-crlf:crs", r"no quirk or case 'sse-crlf:crs'; did you mean 'sse-crlf:cr"),
        ("chat/sample-call + nothing", r"no quirk or case 'chat/sample-call \+ nothing'"),
        ("id-kept", r"no quirk or case 'id-kept'"),
    ],
)
def test_an_unknown_name_is_an_error(name: str, message: str) -> None:
    """A name that is no quirk and no case is an error, with the nearest name that there is."""
    with pytest.raises(UsageError, match=message):
        examine(Naive, CASES, _allow(name))


def test_an_unknown_quirk_is_an_error_before_any_case() -> None:
    """A misspelt name is reported at once, and not after all cases have run."""
    fed: list[Any] = []

    class Counts(Naive):
        def feed(self, chunk: Any, event: str | None = None) -> Delta:
            fed.append(chunk)
            return super().feed(chunk, event)

    with pytest.raises(UsageError, match="chat-name-splits"):
        examine(Counts, CASES, _allow("chat-name-splits"))
    assert fed == []


def test_the_narrowest_excuse_covers_a_case() -> None:
    """Of several names that cover a case, that of the case comes first, then the variant."""
    crlf: Case = case(TEXT, "chat", quirk="sse-crlf:cr")
    names = [crlf.name, "sse-crlf:cr", "sse-crlf"]
    while names:
        assert allowed_name(crlf, dict.fromkeys(reversed(names), "why")) == names[0]
        names.pop(0)
    assert allowed_name(crlf, {"chat-name-split": "why"}) is None
