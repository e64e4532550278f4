"""A report at the level of bytes shows bytes: reads, line ends, BOM, characters that were cut."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking import Outcome, Policy, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Level
from mockllm.checking.cases.scenarios import Variation
from mockllm.checking.reports.check import report_text, reproduction
from mockllm.checking.reports.stream_text import first_changed, format_reads, format_stream
from mockllm.play.quirks.samples import LONG_TEXT, TEXT, UNICODE

PLAIN = case(TEXT, "chat")
BOM = case(TEXT, "chat", quirk="sse-bom", plain=PLAIN)
CR = case(TEXT, "chat", quirk="sse-crlf:cr", plain=PLAIN)
LONG = case(LONG_TEXT, "chat")


class Fails:
    """Reports an error for every stream."""

    def feed(self, data: bytes, event: str | None = None) -> None: ...

    def outcome(self) -> Outcome:
        return Outcome.of(errors=["not read"])


class RaisesAtTheThirdRead(Fails):
    """Raises at the third read."""

    reads = 0

    def feed(self, data: bytes, event: str | None = None) -> None:
        self.reads += 1
        if self.reads == 3:
            raise ValueError("the third read")


def _stream(text: str) -> list[str]:
    """The lines of the stream in a report, without their indentation."""
    lines = text.splitlines()
    start = lines.index("  the stream:") + 1
    return [line[4:] for line in lines[start : start + 5]]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_the_reads_are_the_bytes_of_the_stream(sizes: list[int]) -> None:
    """Each line is a literal of Python; together they are the stream, for every way to cut it."""
    found = case(UNICODE, "chat", Variation(cut=tuple(sizes)))
    reads = [ast.literal_eval(line) for line in format_reads(found)]
    assert reads == list(found.chunks)
    assert b"".join(reads) == b"".join(case(UNICODE, "chat").chunks)


def test_line_ends_are_shown() -> None:
    """CR, LF and CRLF look different."""
    assert "\\n\\n" in format_stream(PLAIN, "bytes")
    assert "\\r" not in format_stream(PLAIN, "bytes")
    assert "\\r\\r" in format_stream(CR, "bytes")


def test_a_byte_order_mark_is_shown() -> None:
    """The three bytes of a byte order mark are in the first read."""
    assert (
        format_stream(BOM, "bytes").splitlines()[0].lstrip("> ").startswith(r"b'\xef\xbb\xbfdata:")
    )


def test_a_character_that_was_cut_is_shown() -> None:
    """Where a read ends inside a character, its bytes are on two lines."""
    lines = format_reads(case(UNICODE, "chat", quirk="sse-utf8-split"))
    before = next(number for number, line in enumerate(lines) if line.endswith(r"\xc3'"))
    assert lines[before + 1].startswith(r"b'\xbc")


@pytest.mark.parametrize("quirk", ["sse-bom", "sse-crlf:cr", "sse-comments"])
def test_the_first_read_that_differs_is_marked(quirk: str) -> None:
    """The mark is at the read with the first byte that the plain form does not have."""
    found = case(TEXT, "chat", Variation(cut=(7,)), quirk, plain=PLAIN)
    data, plain = (b"".join(one.chunks) for one in (found, PLAIN))
    same = next(n for n, (a, b) in enumerate(zip(data, plain, strict=False)) if a != b)
    assert first_changed(found, "bytes") == same // 7
    marked = [line for line in format_stream(found, "bytes").splitlines() if line[:1] == ">"]
    assert marked == [f"> {found.chunks[same // 7]!r}"]


def test_a_plain_stream_has_no_mark() -> None:
    """Without a change there is nothing to mark."""
    assert first_changed(PLAIN, "bytes") is None
    assert not [line for line in format_stream(PLAIN, "bytes").splitlines() if line[:1] == ">"]


def test_the_read_that_raised_is_marked() -> None:
    """Where the client raised, the mark is at the read that it raised at."""
    report = examine(RaisesAtTheThirdRead, [PLAIN], level="bytes")
    text = report_text(report, level="bytes")
    assert text.startswith("ValueError: the third read (test_byte_reports.py:")
    assert [line[:1] for line in _stream(text)] == [" ", " ", ">", " ", " "]
    assert _stream(text)[2].startswith("> b'data: ")


def test_the_report_shows_reads_at_the_level_of_bytes_only() -> None:
    """Decoded events are shown as events, without `\\n`."""
    levels: list[tuple[Level, str]] = [("bytes", "b'data: "), ("payloads", "data: ")]
    for level, begins in levels:
        report = examine(Fails, [PLAIN], level=level)
        assert _stream(report_text(report, level=level))[0].startswith(begins)


def test_a_long_stream_is_shortened_around_the_mark() -> None:
    """A report has at most some forty lines of limited width, the marked one among them."""
    found = case(LONG_TEXT, "chat", Variation(cut=(1000,)))
    lines = format_stream(found, "bytes", at=500).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 170
    assert [line[:1] for line in lines].count(">") == 1


def test_the_reproduction_has_the_level() -> None:
    """The test examines the client by bytes, too, and not by decoded events."""
    report = examine(Fails, [LONG], level="bytes")
    _, test = reproduction(report.failures[0], Fails, level="bytes").values()
    assert 'level="bytes"' in test


POLICIES = [
    Policy(allow={"sse-bom": "behind a proxy"}),
    Policy(malformed="fail", usage_requested=False),
    Policy(ignore=frozenset({"usage"}), intermediate=True),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_reproduction_has_the_policy(policy: Policy) -> None:
    """The test file states the policy of the client, so that it fails in the same way."""
    report = examine(Fails, [PLAIN], policy)
    _, source = reproduction(report.failures[0], Fails, policy=policy).values()
    (call,) = [node for node in ast.walk(ast.parse(source)) if _is_policy(node)]
    values = {"Policy": Policy, "frozenset": frozenset}
    assert eval(ast.unparse(call), values) == policy


def _is_policy(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Policy"
    )
