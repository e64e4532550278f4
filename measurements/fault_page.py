"""Writes the table of docs/resilience-clients.md from measurements/results/faults/*.json.

python -m measurements.fault_page
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from measurements.entries import FAULT_RESULTS, ROOT
from mockllm.checking.rules import RESILIENCE
from mockllm.conformance.results import CaseResult, Results, passes, rule_verdict
from mockllm.conformance.results.file import read_results
from mockllm.core.errors import MockLLMError, UsageError
from mockllm.wire.protocols import PROTOCOLS

__all__ = ["PAGE", "measured_faults", "table", "with_table"]

PAGE = ROOT / "docs" / "resilience-clients.md"
_BEGIN = "<!-- matrix -->"
_END = "<!-- end of matrix -->"


def measured_faults() -> list[Results]:
    """The results of all files, in the order of their names.

    Raises:
        UsageError: a file is damaged.
    """
    return [read_results(path) for path in sorted(FAULT_RESULTS.glob("*.json"))]


Rows = Mapping[str, Sequence[CaseResult]]
"""The cases of each row: of a rule, or of one of the ways to cancel."""

CANCEL = "cancel-closes"
WAYS = ("leave", "call", "drop")
ROWS = tuple(
    row
    for rule in RESILIENCE
    for row in ([f"{CANCEL}:{way}" for way in WAYS] if rule == CANCEL else [rule])
)


def rows_of(results: Results) -> Rows:
    """The rows of a client; what it was not judged by has no cases."""
    rules = results.rules
    cancelled = {
        f"{CANCEL}:{way}": [c for c in rules.get(CANCEL, ()) if c.played.endswith(f"-{way}")]
        for way in WAYS
    }
    return {row: cancelled[row] if row in cancelled else rules.get(row, []) for row in ROWS}


@cache
def reproduced() -> Mapping[str, frozenset[str]]:
    """The rows that a server of a few lines has shown to be broken, by the name of the client."""
    text = (ROOT / "measurements" / "reproduced.toml").read_text("utf-8")
    return {name: frozenset(rows) for name, rows in tomllib.loads(text).items()}


def with_table(text: str, lines: str) -> str:
    """The page with a new table after its marker.

    Raises:
        UsageError: the page has no marker.
    """
    before, marker, after = text.partition(_BEGIN)
    if not marker:
        raise UsageError(f"the page has no line {_BEGIN}, where the table is put")
    _, ended, rest = after.partition(_END)
    kept = rest if ended else after
    return f"{before}{_BEGIN}\n{lines}\n{_END}{kept}"


def table(results: Sequence[Results]) -> str:
    """The table of each API, with a line for each mistake."""
    return "\n".join(_lines(results))


_HEAD = """\
{clients} ways of using well-known clients, measured between {first} and {last} with all cases. Each
was used as its documentation recommends, with the retries and the timeout of the case wherever it
has an option for them, and with the documented way of reading a stream. `✓`: kept in every case
that was judged. `✖`: broken in so many of the judged cases, and a server without mockllm has shown
it, too. `?`: measured in so many of the judged cases, and not yet shown without mockllm: a
question, and no accusation. `–`: not judged. `·`: does not apply. There are {shown} ✖ and {open} ?.

How to read it:

- An error is what the client itself reports as one: an exception, an error event of its stream, or
  the error of a call or of a response. A finish reason or a state is none: some clients leave it
  empty, or set it to a word of their own, where a stream was cut. A program can check that; few do.
- A user cancels in three ways, the same for all clients, after the first piece of a stream of 30 s.
  `leave`: the loop is left, and the `with` around it where the documentation has one; the stream is
  kept. `call`: what the client has to cancel is called. `drop`: nothing refers to the stream any
  more, and the garbage is collected. A connection is to be closed within 5 s; the client object
  stays open for longer. `·` is a way that a client has not.
- `orderly` in the name of a case is a stream whose HTTP body ends as it should, without the last
  events. Proxies that give up on a service do this.
- `error-names-cause` is judged from the class, status, code and type of the exception. An exception
  of the HTTP library or of the language is not the client's own, and names no cause.
- `leaves-nothing` counts sockets and tasks after the client was closed. It is not judged for
  clients that have no way to be closed, nor under Node.
- `stall-times-out` uses the timeout that the client has an option for. One that ends with the
  headers, or that bounds the whole answer, is no idle timeout.

Each ✖ was repeated with a server of a few lines, outside of mockllm:
[findings/resilience](findings/resilience/README.md) has the server, the clients and the log.
[measurements/results/faults](../measurements/results/faults) has each case with its bytes and the
log of its connections, of each ? as well.
"""


def _lines(results: Sequence[Results]) -> Iterator[str]:
    dates = sorted(result.date for result in results)
    marks = [_mark(one, row) for one in results for row in ROWS]
    shown, open_ = (sum(mark.startswith(symbol) for mark in marks) for symbol in "✖?")
    yield _HEAD.format(
        clients=len(results), first=dates[0], last=dates[-1], shown=shown, open=open_
    )
    for api in PROTOCOLS:
        own = [result for result in results if result.api == api]
        if own:
            own.sort(key=lambda one: (_broken(one), one.client.name.lower()))
            yield f"## {PROTOCOLS.addresses[api].title}"
            yield ""
            yield from _matrix(own)
            yield ""
            yield from (line for one in own for line in _mistakes(one))
            yield ""


def _broken(results: Results) -> int:
    return sum(_mark(results, row).startswith("✖") for row in ROWS)


def _matrix(results: Sequence[Results]) -> Iterator[str]:
    numbers = " | ".join(f"{number}" for number in range(1, len(results) + 1))
    yield f"| rule | {numbers} |"
    yield "|---" * (len(results) + 1) + "|"
    for row in ROWS:
        marks = [_mark(result, row) for result in results]
        yield f"| {_title(row)} | {' | '.join(marks)} |"
    yield ""
    for number, one in enumerate(results, 1):
        client = one.client
        yield f"{number}. {client.name} ({client.language}), {client.version}"


def _title(row: str) -> str:
    rule, _, way = row.partition(":")
    return f"`{rule}`, {way}" if way else f"`{rule}`"


def _mark(results: Results, row: str) -> str:
    cases = rows_of(results)[row]
    shown = {"right": "✓", "not judged": "–", "not applicable": "·"}
    wrong = sum(case.failed for case in cases)
    judged = wrong + sum(map(passes, cases))
    symbol = "✖" if row in reproduced().get(results.client.name, ()) else "?"
    return shown.get(rule_verdict(cases)) or f"{symbol} {wrong} of {judged}"


def _mistakes(results: Results) -> Iterator[str]:
    """A line for each row that the client breaks, with its plainest case; open ones come last."""
    broken = {
        row: failed
        for row, cases in rows_of(results).items()
        if (failed := [case for case in cases if case.failed])
    }
    open_ = broken.keys() - reproduced().get(results.client.name, frozenset())
    if not broken:
        return
    yield f"**{results.client.name}** ({results.client.language})"
    yield ""
    for row, cases in sorted(broken.items(), key=lambda pair: pair[0] in open_):
        first, *others = (case.played.partition("/")[2] for case in cases)
        more = f" Also in {', '.join(others)}." if others else ""
        known = "not yet shown without mockllm, " if row in open_ else ""
        yield f"- {_title(row)}, {known}in {first}: `{_plain(cases[0].differences[0])}`.{more}"
    yield ""


def _plain(text: str) -> str:
    text = " ".join(text.replace("`", "'").split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_LONGEST = 140


def main() -> None:
    """Writes the table."""
    try:
        results = measured_faults()
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), table(results)), "utf-8")
    except MockLLMError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {len(results)} clients\n")


if __name__ == "__main__":
    main()
