"""JUnit, badge and terminal, each made from results alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.conformance.reports.badge import badge_svg, right_groups
from mockllm.conformance.reports.junit import junit_xml
from mockllm.conformance.reports.terminal import exit_code, terminal_lines
from mockllm.conformance.results import CaseResult, Results, passes
from mockllm.conformance.results.known import Known, KnownList, Standing
from tests.conformance.results import generated
from tests.conformance.results.made import results, row


def standing(of: Results, failing: Iterable[str] = (), flaky: Iterable[str] = ()) -> Standing:
    lists = [
        KnownList(
            "known.txt",
            tuple(Known(pattern, f"issue of {pattern}", pattern) for pattern in patterns),
        )
        for patterns in (failing, flaky)
    ]
    return Standing.of(of.cases, *lists)


EVERY = results(
    row("echo/right"),
    row("echo/one+index-a", "wrong", cost="wrong call", reproduce=("mockllm show x",)),
    row("echo/two+index-a", "wrong", cost="wrong call"),
    row("echo/known", "crash", exception="KeyError: 'x' (a.py:1 in f)"),
    row("echo/flaky", "wrong"),
    row("echo/passes"),
    row("echo/of-plain", "wrong", baseline="echo/known", reason="the plain form is wrong, too"),
    row("echo/adapter", "adapter", reason="run.py:3 raised it", differences=("x",)),
    row("echo/none", "not judged", reason="no place", not_judged=("role",)),
)
STANDING = standing(EVERY, ["echo/known", "echo/passes"], ["echo/flaky"])


def problems(text: str) -> dict[str, tuple[str, str]]:
    """The tag and the message of what each case has."""
    found = {}
    for case in ET.fromstring(text).iter("testcase"):
        children = list(case)
        if children:
            found[case.get("name", "")] = children[0].tag, children[0].get("message", "")
    return found


def test_junit() -> None:
    """One test case each: failures are what fails the run, everything else is skipped."""
    assert problems(junit_xml(EVERY, STANDING)) == {
        "echo/one+index-a": ("failure", "text is lost"),
        "echo/two+index-a": ("failure", "text is lost"),
        "echo/known": ("skipped", "known: issue of echo/known"),
        "echo/flaky": ("skipped", "known: issue of echo/flaky"),
        "echo/passes": ("failure", "passes, and is on the list of failing cases: remove it there"),
        "echo/of-plain": ("skipped", "the plain form is wrong, too: echo/known"),
        "echo/adapter": ("error", "run.py:3 raised it"),
        "echo/none": ("skipped", "not judged: no place"),
    }


SUITE = {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}


@given(generated.results)
def test_junit_is_valid_for_any_results(of: Results) -> None:
    """Control characters, lone surrogates and markup, which clients return, are escaped."""
    text = junit_xml(of, standing(of))
    root = ET.fromstring(text.encode())
    suite = root[0]
    assert (root.tag, suite.tag, set(suite.keys())) == ("testsuites", "testsuite", SUITE)
    cases = suite.findall("testcase")
    assert [one.tag for one in suite] == ["properties", *["testcase"] * len(cases)]
    assert len(cases) == len(of.cases) == int(suite.get("tests", ""))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.get(name, "")) == len(list(suite.iter(tag)))
    for case_ in cases:
        assert set(case_.keys()) == {"classname", "name", "time"}
        assert len(case_) <= 1


def test_characters_that_xml_forbids() -> None:
    """They are written as escapes, so that the difference can still be read."""
    of = results(row("echo/a", "wrong", differences=("got \x00 and \ud83d\ufffe, not <é>",)))
    assert problems(junit_xml(of, standing(of))) == {
        "echo/a": ("failure", r"got \u0000 and \ud83d\ufffe, not <é>")
    }


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (results(row("echo/a")), "mockllm echo: 1/1 groups"),
        (results(row("echo/a"), row("echo/a+ids-a", "wrong")), "mockllm echo: 1/2 groups"),
        (results(row("echo/a"), row("echo/b", "not judged", group="x")), "echo: 1/1 groups"),
        (results(row("echo/a", "not judged")), "mockllm echo: not judged"),
        (results(row("echo/a"), stopped="interrupted"), "mockllm echo: not all judged"),
    ],
)
def test_badge(of: Results, text: str) -> None:
    """It counts the groups that were judged, and is well-formed."""
    svg = ET.fromstring(badge_svg(of))
    assert text in svg.get("aria-label", "")


@given(generated.results, st.booleans())
def test_what_is_printed_is_what_makes_a_run_red(of: Results, known: bool) -> None:
    """Terminal, JUnit and exit code have the same mistakes, and what was not judged is never one
    that is right."""
    stands = standing(of, ["*"] if known else [])
    lines = list(terminal_lines(of, stands))
    counts = [re.search(r"^MISTAKES: .*, in (\d+) case", line) for line in lines]
    printed = sum(int(count[1]) for count in counts if count)
    red = ET.fromstring(junit_xml(of, stands))[0].get("failures")
    assert printed == len(stands.new) == int(red or 0) - len(stands.passing)
    assert (exit_code(of, stands) == 1) == bool(stands.new or stands.passing)
    unknown = [case_ for case_ in of.cases if case_.verdict in ("not judged", "not applicable")]
    assert not any(map(passes, unknown))
    assert not any(one in unknown for one in stands.passing)


def test_the_colour_of_a_badge_shows_the_worst_mistake() -> None:
    """A badge is green only where everything was judged and right."""
    right, wrong = results(row("echo/a")), results(row("echo/a"), row("echo/b", "wrong"))
    colours = [
        badge_svg(one).partition('fill="#3a3a3a"')[2].partition('fill="')[2][:7]
        for one in (right, wrong, replace(right, stopped="x"), results())
    ]
    assert len(set(colours)) == 3
    assert colours[2] == colours[3]
    assert right_groups(EVERY) == (0, 2)


def test_terminal() -> None:
    """The group's counts, each mistake once, the lists, and what was not judged."""
    text = "\n".join(terminal_lines(EVERY, STANDING))
    assert "demo 1.0 (python) over echo, level bytes: 9 cases" in text
    assert "plain      7      2      2      3  data lost" in text
    assert "index      2             2         wrong call" in text
    assert "OTHER: 1 wrong in their plain form, too, 1 raised by the adapter, 1 not judged" in text
    assert "MISTAKES: 1, in 2 cases\n" in text
    assert "echo/one+index-a (and 1 more like it)\n    text is lost" in text
    assert "To see the bytes: mockllm show echo/one+index-a" in text
    assert "KNOWN: 1 failing as listed, 1 of the flaky ones failing" in text
    assert "or use --update:\n  echo/passes" in text
    assert "role in 1 case: the client has no place for it" in text
    assert "1 case, echo/adapter first: run.py:3 raised it" in text


def test_the_worst_ten_come_first() -> None:
    """Of many mistakes, those that cost most are shown."""
    many = [row(f"echo/{n}", "crash", cost="loud failure") for n in range(12)]
    text = "\n".join(terminal_lines(of := results(*many, EVERY.cases[1]), standing(of)))
    assert "MISTAKES: 13, in 13 cases; the worst 10:\nwrong call: a call is executed" in text
    assert sum(line.startswith("  echo/") for line in text.splitlines()) == 10


def test_a_plain_case_comes_before_its_variations() -> None:
    """Of mistakes that cost the same, the one that is simplest to read is shown."""
    names = ("echo/one~cut1", "echo/two", "echo/three~cut1")
    text = "\n".join(terminal_lines(of := results(*[row(n, "wrong") for n in names]), standing(of)))
    assert re.findall(r"^  (echo/\S+)", text, re.MULTILINE)[0] == "echo/two"


@pytest.mark.parametrize(
    ("cases", "fields", "code"),
    [
        ([row("echo/a")], {}, 0),
        ([row("echo/a"), row("echo/b", "not judged")], {}, 0),
        ([row("echo/a", "wrong")], {}, 1),
        ([row("echo/a", "wrong", baseline="echo/b")], {}, 0),
        ([row("echo/a"), row("echo/b", "adapter")], {}, 2),
        ([row("echo/a")], {"stopped": "interrupted"}, 2),
        ([row("echo/a", "wrong")], {"stopped": "interrupted"}, 1),
        ([row("echo/a", "not judged")], {}, 2),
        ([], {}, 2),
    ],
)
def test_exit_code(cases: list[CaseResult], fields: dict[str, Any], code: int) -> None:
    """1 for mistakes; 2 where nothing, or not all, could be judged; single fields do not count."""
    of = results(*cases, **fields)
    assert exit_code(of, standing(of)) == code


def test_exit_code_with_lists() -> None:
    """A listed mistake does not fail the run, a listed case that passes does."""
    of = results(row("echo/a", "wrong"), row("echo/b"))
    assert exit_code(of, standing(of, ["echo/a"])) == 0
    assert exit_code(of, standing(of, flaky=["echo/*"])) == 0
    assert exit_code(of, standing(of, ["echo/*"])) == 1


@given(generated.results, st.booleans())
def test_any_results_can_be_reported(of: Results, known: bool) -> None:
    """No value of a client stops a report, and lines hold no line breaks."""
    compared = standing(of, ["*"] if known else [])
    for line in terminal_lines(of, compared):
        line.encode("utf-8", "backslashreplace")
    ET.fromstring(badge_svg(of).encode())
    assert exit_code(of, compared) in (0, 1, 2)
