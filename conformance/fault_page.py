"""Writes the table of docs/resilience.md from conformance/results/faults/*.json.

python -m conformance.fault_page
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from conformance.entries import FAULT_RESULTS, ROOT
from conformance.published import WITHHELD
from mockllm.checking.rules import RESILIENCE
from mockllm.conformance.results import CaseResult, Results, passes, rule_verdict
from mockllm.conformance.results.file import read_results
from mockllm.errors import MockLLMError, UsageError
from mockllm.protocols import PROTOCOLS

__all__ = ["PAGE", "measured_faults", "table", "with_table"]

PAGE = ROOT / "docs" / "resilience.md"
_BEGIN = "<!-- matrix -->"
_END = "<!-- end of matrix -->"


def measured_faults() -> list[Results]:
    """The results of all files, in the order of their names.

    Raises:
        UsageError: a file is damaged.
    """
    return [read_results(path) for path in sorted(FAULT_RESULTS.glob("*.json"))]


def with_table(text: str, results: Sequence[Results]) -> str:
    """The page with a new table after its marker.

    Raises:
        UsageError: the page has no marker.
    """
    before, marker, after = text.partition(_BEGIN)
    if not marker:
        raise UsageError(f"{PAGE.name} has no line {_BEGIN}, where the table is put")
    _, ended, rest = after.partition(_END)
    kept = rest if ended else after
    return f"{before}{_BEGIN}\n{table(results)}\n{_END}{kept}"


def table(results: Sequence[Results]) -> str:
    """The table of each API, with a line for each mistake."""
    return "\n".join(_lines(results))


_HEAD = """\
{clients} ways of using well-known clients, measured between {first} and {last} with all cases. Each
was used as its documentation recommends, with the retries and the timeout of the case wherever it
has an option for them, and with the documented way of reading a stream. `✓`: kept in every case
that was judged. `✖`: broken in so many of the judged cases. `–`: not judged. `·`: does not apply.
`?`: a mistake was seen with mockllm; it is published once a server without mockllm has shown it.

How to read it:

- A client breaks `cut-reported` where it returns without an error. Some leave the finish reason
  empty then, which a program can check; few programs do.
- `orderly` in the name of a case is a stream whose HTTP body ends as it should, without the last
  events. Proxies that give up on a service do this.
- `error-names-cause` is judged from the class, status, code and type of the exception. An exception
  of the HTTP library or of the language is not the client's own, and names no cause.
- `leaves-nothing` counts sockets and tasks after the client was closed. It is not judged for
  clients that have no way to be closed, nor under Node.
- `stall-times-out` uses the timeout that the client has an option for. One that ends with the
  headers, or that bounds the whole answer, is no idle timeout.

Each mistake below was repeated with a server of a few lines, outside of mockllm:
[findings/resilience](findings/resilience/README.md) has the server, the clients and the log.
[conformance/results/faults](../conformance/results/faults) has each case with the log of its
connections.
"""


def _lines(results: Sequence[Results]) -> Iterator[str]:
    dates = sorted(result.date for result in results)
    yield _HEAD.format(clients=len(results), first=dates[0], last=dates[-1])
    for api in PROTOCOLS:
        own = [result for result in results if result.api == api]
        if own:
            own.sort(key=lambda one: (_broken(one), one.client.name.lower()))
            yield f"### {PROTOCOLS.addresses[api].title}"
            yield ""
            yield from _matrix(own)
            yield ""
            yield from (line for one in own for line in _mistakes(one))
            yield ""


def _broken(results: Results) -> int:
    return sum(rule_verdict(cases) == "wrong" for cases in results.rules.values())


def _matrix(results: Sequence[Results]) -> Iterator[str]:
    numbers = " | ".join(f"{number}" for number in range(1, len(results) + 1))
    yield f"| rule | {numbers} |"
    yield "|---" * (len(results) + 1) + "|"
    for rule in RESILIENCE:
        marks = [_mark(result.rules[rule]) for result in results]
        yield f"| `{rule}` | {' | '.join(marks)} |"
    yield ""
    for number, one in enumerate(results, 1):
        client = one.client
        yield f"{number}. {client.name} ({client.language}), {client.version}"


def _mark(cases: Sequence[CaseResult]) -> str:
    if any(case.reason == WITHHELD for case in cases):
        return "?"
    shown = {"right": "✓", "not judged": "–", "not applicable": "·"}
    wrong = sum(case.failed for case in cases)
    judged = wrong + sum(map(passes, cases))
    return shown.get(rule_verdict(cases)) or f"✖ {wrong} of {judged}"


def _mistakes(results: Results) -> Iterator[str]:
    """A line for each rule that the client breaks, with its plainest case."""
    broken = {
        rule: failed
        for rule, cases in results.rules.items()
        if (failed := [case for case in cases if case.failed])
    }
    if not broken:
        return
    yield f"**{results.client.name}** ({results.client.language})"
    yield ""
    for rule, cases in broken.items():
        first, *others = (case.played.partition("/")[2] for case in cases)
        more = f" Also in {', '.join(others)}." if others else ""
        yield f"- `{rule}`, in {first}: `{_plain(cases[0].differences[0])}`.{more}"
    yield ""


def _plain(text: str) -> str:
    text = " ".join(text.replace("`", "'").split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_LONGEST = 140


def main() -> None:
    """Writes the table."""
    try:
        results = measured_faults()
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), results), "utf-8")
    except MockLLMError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {len(results)} clients\n")


if __name__ == "__main__":
    main()
