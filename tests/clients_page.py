"""Generates docs/clients.md: how real clients handle each quirk.

    python -m tests.clients_page            measures every cell, in minutes
    python -m tests.clients_page NAME ...   measures these quirks and those that are not on the page

Every cell is measured here: the client, used as its documentation recommends, receives the quirk's
sample over HTTP, and the outcome that its user gets is compared with the right one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mockllm.checking import Case, Outcome, Policy, differences
from mockllm.checking.cases.compile import quirk_cases
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.examine import outcome_of
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS, find
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.conformance.client import Client, NotInstalledError
from tests.conformance.clients import CLIENTS

PAGE = Path(__file__).parents[1] / "docs" / "clients.md"
_LONGEST = 150
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_ID = re.compile(r'\bid (is )?"([^"]*)"')
_FRAMED_FOR = "ag-ui-protocol types"
"""A package without a client: the test decodes the frames."""
_NO_FINISH = ("interrupted", "aborted", "error")
"""Finish reasons by which a client reports that there was none: as clear as an error."""
_NOT_MEASURED = "–"


@dataclass(frozen=True)
class Cell:
    """How a client handles a quirk: a mark and, where it is not right, a description."""

    mark: str
    description: str = ""


def installed() -> tuple[list[Client], list[str]]:
    """The clients that are installed, and why the others are not."""
    here, missing = [], []
    for client in CLIENTS:
        try:
            client.version()
        except NotInstalledError as error:
            missing.append(str(error))
        else:
            here.append(client)
    return here, missing


def policy_of(client: Client) -> Policy:
    """How a client is judged: it may return arguments that are not JSON as text."""
    return Policy(ignore=client.unseen, malformed="keep")


Known = Mapping[tuple[str, str], Cell]
"""Cells by the names of client and quirk."""


def measured(
    clients: Iterable[Client], known: Known | None = None
) -> Iterator[tuple[Client, Case, Cell]]:
    """Every client on every variant of every quirk of its API.

    Args:
        known: cells that are not measured again.
    """
    known = known or {}
    cases: dict[str, list[Case]] = {}
    with ServerThread([], ServerOptions(speed=0)) as server:
        for number, client in enumerate(clients):
            session = f"client-{number}"
            if client.api not in cases:
                cases[client.api] = list(quirk_cases(client.api))
            for case in cases[client.api]:
                if client.name == _FRAMED_FOR and QUIRKS[_plain(case.quirk)].group in "FG":
                    continue
                if (client.name, case.quirk) in known:
                    yield client, case, known[client.name, case.quirk]
                    continue
                server.server.assign(session, [case.scenario], named=case.scenario.name)
                url = f"{server.url}/s/{session}{PROTOCOLS[case.api].base_path}"
                yield client, case, cell(client, case, outcome_of(client.run, url, case))
            server.server.forget(session)


def _plain(name: str) -> str:
    return name.partition(":")[0]


def cell(client: Client, case: Case, outcome: Outcome) -> Cell:
    """The cell for one outcome."""
    found = differences(case, outcome, policy_of(client))
    if case.reaction == "error" and outcome.finish in _NO_FINISH:
        return Cell("error")
    if not found:
        return Cell("ok" if not outcome.errors else "error")
    messages = [trouble.message for trouble in outcome.errors]
    messages = messages or [difference.description for difference in found]
    return Cell(_wrong(case, outcome, found), _short("; ".join(messages)))


def _wrong(case: Case, outcome: Outcome, found: Collection[Difference]) -> str:
    if any(trouble.crash for trouble in outcome.errors):
        return "**breaks**"
    if outcome.errors and case.reaction == "error":
        vague = all(difference.field == "error_message" for difference in found)
        return "**vague**" if vague else "**wrong**"
    if outcome.errors:
        return "**error**"
    return "**silent**" if case.reaction == "error" else "**wrong**"


def _short(text: str) -> str:
    plain = " ".join(_PORT.sub("127.0.0.1", text).split())
    plain = _ID.sub(_id, plain)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"


def _id(match: re.Match[str]) -> str:
    """An id of the samples as it is; one that a client made up, without its value."""
    verb, id = match.groups(default="")
    sent = re.fullmatch(r"(call_[A-Z]\d|\d*|null)+", id)
    return match[0] if sent else f'id {verb}"(made up)"'


_HEAD = """\
# What real clients make of quirks

This page shows how well-known clients handle every [quirk](quirks.md) of real servers. There is a
table for each API. The list after a table describes the outcomes that are not right.

Every cell was measured: the client, used as its documentation recommends for streams with tools,
received the quirk over HTTP, and the outcome that its user gets was compared with the right one.
`python -m tests.clients_page` generates the page, and a test measures the official Python clients
again.

| mark | meaning |
|---|---|
| ok | the right outcome |
| error | a clear error, or a finish reason that reports one; right for this quirk |
| **wrong** | a different outcome; no error, or one with a wrong outcome beside it |
| **silent** | no error, although one is due |
| **error** | an error, although the stream can be read |
| **vague** | an error without the message that the service sent |
| **breaks** | an exception that points to a bug in the client (`KeyError`, `TypeError`, ...) |
| – | not measured: the quirk is in a layer that the package does not have |

`NAME:VARIANT` is another form of a quirk. To see what a client of your own does:

- `mockllm quirks NAME` describes the quirk: where it was seen, what is right, and known reports.
  The reports were found through an index of issues and not each read again.
- `mockllm serve scenarios/ --quirk NAME` plays it to any client.
- `mockllm show SAMPLE --quirk NAME` prints its bytes.
"""


_ROW = re.compile(r"- `([^`]+)`: ")
_DESCRIPTION = re.compile(r"  - (.+?) \((\w+)\): (.*)")


def written() -> dict[tuple[str, str], Cell]:
    """The cells that are on the page."""
    cells: dict[tuple[str, str], Cell] = {}
    names: list[str] = []
    quirk = ""
    for line in PAGE.read_text().splitlines():
        row = [text.strip() for text in line.strip("|").split("|")]
        if line.startswith("| quirk | right |"):
            names = row[2:]
        elif line.startswith("| `") and names:
            quirk = row[0].strip("`")
            marks = zip(names, row[2:], strict=True)
            cells |= {(name, quirk): Cell(mark) for name, mark in marks if mark != _NOT_MEASURED}
        elif found := _ROW.match(line):
            quirk = found[1]
        elif (found := _DESCRIPTION.match(line)) and (found[1], quirk) in cells:
            mark = cells[found[1], quirk].mark
            cells[found[1], quirk] = Cell(mark, found[3])
    return cells


def outdated(clients: Iterable[Client]) -> list[str]:
    """The clients that the page measured in another version, or not at all."""
    text = PAGE.read_text()
    return [
        one.name for one in clients if f"| {one.name} | {one.api} | {one.version()} |" not in text
    ]


def kept(again: Collection[str]) -> dict[tuple[str, str], Cell]:
    """The cells on the page that stay as they are: those of other quirks than these."""
    return {key: one for key, one in written().items() if again and _plain(key[1]) not in again}


def page(clients: list[Client], known: Known | None = None) -> str:
    """The whole page.

    Args:
        known: cells that are not measured again.
    """
    cells: dict[str, dict[str, dict[str, Cell]]] = {}
    samples: dict[str, Case] = {}
    for client, case, judged in measured(clients, known):
        cells.setdefault(client.api, {}).setdefault(case.quirk, {})[client.name] = judged
        samples[case.quirk] = case
    lines = [_HEAD, "## The clients", "", "| client | API | version | right |", "|---|---|---|---|"]
    for client in clients:
        rows = cells[client.api].values()
        own = [row[client.name] for row in rows if client.name in row]
        right = sum(each.mark in ("ok", "error") for each in own)
        lines.append(
            f"| {client.name} | {client.api} | {client.version()} | {right} of {len(own)} |"
        )
    notes = [f"- {client.name}: {client.notes}" for client in clients if client.notes]
    if notes:
        lines += ["", *notes]
    for api, rows in cells.items():
        lines += ["", *_table(api, rows, [c for c in clients if c.api == api], samples)]
    return "\n".join(lines) + "\n"


def _table(
    api: str, rows: dict[str, dict[str, Cell]], clients: list[Client], samples: dict[str, Case]
) -> Iterator[str]:
    yield f"## {PROTOCOLS[api].title}"
    yield ""
    yield "| quirk | right | " + " | ".join(client.name for client in clients) + " |"
    yield "|---|---|" + "---|" * len(clients)
    for quirk, row in rows.items():
        marks = [row[c.name].mark if c.name in row else _NOT_MEASURED for c in clients]
        yield f"| `{quirk}` | {samples[quirk].reaction} | " + " | ".join(marks) + " |"
    yield ""
    yield "Outcomes that were not right:"
    yield ""
    for quirk, row in rows.items():
        wrong = [
            (c.name, row[c.name]) for c in clients if c.name in row and row[c.name].description
        ]
        if not wrong:
            continue
        known = QUIRKS[_plain(quirk)]
        yield f"- `{quirk}`: {known.title}. Right: {known.correct}."
        for name, judged in wrong:
            yield f"  - {name} ({judged.mark.strip('*')}): {judged.description}"


if __name__ == "__main__":
    here, missing = installed()
    if missing:
        sys.exit("\n".join(missing))
    again = {find(name)[0].name for name in sys.argv[1:]}
    if again and (others := outdated(here)):
        sys.exit(f"measure all, as these have other versions on the page: {', '.join(others)}")
    PAGE.write_text(page(here, kept(again)))
    print(f"{PAGE}: {len(here)} clients")
