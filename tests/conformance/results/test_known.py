"""Lists of known mistakes: what fails a run, and what `--update` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.conformance.results import CaseResult
from mockllm.conformance.results.known import (
    KnownList,
    Standing,
    check_patterns,
    read_known,
    updated_text,
)
from mockllm.core.errors import UsageError
from tests.conformance.results.made import row


def listed(tmp_path: Path, text: str) -> KnownList:
    file = tmp_path / "known.txt"
    file.write_text(text)
    return read_known(file)


def names(cases: tuple[CaseResult, ...]) -> list[str]:
    return [case.case for case in cases]


def test_standing(tmp_path: Path) -> None:
    """New mistakes and listed cases that pass fail the run; nothing else does."""
    cases = [
        row("echo/new", "wrong"),
        row("echo/listed", "crash"),
        row("echo/passes"),
        row("echo/tolerated", "tolerated"),
        row("echo/unjudged", "not judged"),
        row("echo/adapter", "adapter"),
        row("echo/of-plain", "wrong", baseline="echo/listed"),
        row("echo/flaky-1", "wrong"),
        row("echo/flaky-2"),
        row("echo/right"),
    ]
    text = "".join(
        f"echo/{name}\n"
        for name in ("listed", "passes", "tolerated", "unjudged", "adapter", "of-plain")
    )
    failing = listed(tmp_path, f"{text}echo/flaky-2\n")
    flaky = KnownList("f", listed(tmp_path, "echo/flaky-*  # races").lines)
    standing = Standing.of(cases, failing, flaky)
    assert names(standing.new) == ["echo/new"]
    assert names(standing.listed) == ["echo/listed"]
    assert names(standing.flaky) == ["echo/flaky-1"]
    assert names(standing.passing) == ["echo/passes", "echo/tolerated"]
    assert not standing.good
    assert Standing.of(cases[-1:], failing, flaky).good
    assert standing.reason("echo/flaky-1") == "races"
    assert standing.reason("echo/new") == ""


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    """With file, line and the nearest name; comments and empty lines are none."""
    known = listed(tmp_path, "# all of them\n\necho/one*\necho/tow  # reason\n")
    with pytest.raises(UsageError, match=r"known\.txt:4: .*'echo/tow'.* did you mean 'echo/two'\?"):
        check_patterns(known, ["echo/one", "echo/two"])
    check_patterns(known, ["echo/one", "echo/tow"])


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A missing one can be written by `--update`; two patterns in a line are a mistake."""
    with pytest.raises(UsageError, match="--update"):
        read_known(tmp_path / "none.txt")
    assert read_known(tmp_path / "none.txt", missing=True).lines == ()
    with pytest.raises(UsageError, match=r"known\.txt:1: 'a b' is not one pattern"):
        listed(tmp_path, "a b\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        read_known(tmp_path / "bytes")


def test_update_writes_one_line_for_a_mistake(tmp_path: Path) -> None:
    """A quirk whose cases all fail is one pattern, a variant or a stream likewise; a pattern lists
    nothing that is right."""
    cases = [
        *(row(f"chat/{name}+chat-ids:{kind}", "wrong") for name in "ab" for kind in "xy"),
        row("chat/a+chat-names:x", "wrong"),
        row("chat/b+chat-names:x~cut1", "wrong"),
        row("chat/a+chat-names:y"),
        row("chat/b", "wrong"),
        row("chat/b~cut1", "wrong"),
        row("chat/a"),
        row("chat/a~cut1", "wrong"),
    ]
    known = listed(tmp_path, "")
    every = [case.case for case in cases]
    text = updated_text(known, Standing.of(cases, known, KnownList()), every)
    patterns = [line.partition("  #")[0] for line in text.splitlines()]
    assert patterns == ["chat/*+chat-ids*", "chat/*+chat-names:x*", "chat/b*", "chat/a~cut1"]
    again = listed(tmp_path, text)
    assert Standing.of(cases, again, KnownList()).good


def test_update_keeps_comments_and_reasons(tmp_path: Path) -> None:
    """Lines of cases that pass go, new mistakes follow, everything else stays as it is."""
    text = (
        "# Known since 1.2\n"
        "\n"
        "echo/fails   # issue 7\n"
        "echo/passes  # issue 8\n"
        "echo/many-*  # issue 9\n"
        "echo/unrun\n"
        "echo/none    # there is no such case\n"
    )
    cases = [
        row("echo/fails", "wrong"),
        row("echo/passes"),
        row("echo/many-1", "wrong"),
        row("echo/many-2"),
        row("echo/new", "crash", exception="KeyError: 'x'\n (a.py:1)", cost="loud failure"),
    ]
    known = listed(tmp_path, text)
    standing = Standing.of(cases, known, KnownList())
    every = [*(case.case for case in cases), "echo/unrun"]
    assert updated_text(known, standing, every) == (
        "# Known since 1.2\n"
        "\n"
        "echo/fails   # issue 7\n"
        "echo/many-1  # issue 9\n"
        "echo/unrun\n"
        "echo/new  # loud failure: KeyError: 'x' (a.py:1)\n"
    )
    again = listed(tmp_path, updated_text(known, standing, every))
    assert Standing.of(cases, again, KnownList()).good
    check_patterns(again, every)
