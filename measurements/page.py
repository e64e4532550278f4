"""Writes docs/clients.md and docs/conformance.html from measurements/results/*.json.

python -m measurements.page
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from measurements.entries import RESULTS, ROOT
from mockllm.checking.rules import COSTS, STREAM_COSTS
from mockllm.conformance.results import Results
from mockllm.conformance.results.file import read_results
from mockllm.conformance.site import overview_page
from mockllm.conformance.site.columns import Column, QuirkRow, quirk_rows
from mockllm.conformance.site.ranking import sections_of
from mockllm.core.errors import MockLLMError
from mockllm.wire.protocols import PROTOCOLS

__all__ = ["OVERVIEW", "PAGE", "page", "published"]

PAGE = ROOT / "docs" / "clients.md"
OVERVIEW = ROOT / "docs" / "conformance.html"
_MOST = 10
"""Quirks on the page."""


def published() -> list[Results]:
    """The results of all files, in the order of their names.

    Raises:
        UsageError: a file is damaged.
    """
    return [read_results(path) for path in sorted(RESULTS.glob("*.json"))]


def page(results: Sequence[Results]) -> str:
    """The text of docs/clients.md."""
    return "\n".join(_lines(results)) + "\n"


_HEAD = """\
# How real clients read the streams of real servers

{clients} ways of using {packages} well-known libraries, measured between {first} and {last} with
every [quirk](quirks.md) of real servers. Each client was used as its documentation recommends for
streams with tools. It received the bytes over HTTP, and what its user gets was compared with what
the stream says. Each file of results has the versions of everything that ran{runtimes}.

- **[The overview](conformance.html)** (one file: download it and open it in a browser) has every
  mistake in a sentence. `make site` builds the whole report into `build/site/`, with the bytes of
  each mistake, the client's own error, and the two commands that show it again.
- **Your own client**: `mockllm check --api chat -- YOUR-RUNNER` gives it the same column; see
  [check.md](check.md). [measurements/](../measurements/README.md) has the adapters, the results,
  and how to add a client.

## How to read it

The numbers count groups of quirks, such as `index` or `usage`, not quirks: a client that fails in
one way fails often. A group counts once, by the worst that happens in it.

| mistake | what happens to the user |
|---|---|
| wrong call | a call that the model did not make, or one of an answer that broke off |
| data lost | text, a call or an error of the service is lost, and nothing says so |
| wrong metadata | ids, order, finish, role or usage are wrong |
| loud failure | the client fails with an error where the stream can be read |
| not judged | the client has no place for what the group is about |

A verdict counts only where the stream is valid, or where a report shows a real server that sends
it. Two kinds of mistakes are shown in the report, and count nowhere:

- *non-strict*: a loud failure on a stream that breaks its own protocol.
- *informational*: any mistake with a stream that no source shows.

All clients are judged by one policy: a call whose arguments never parse is handed on as text, where
its user sees that it is broken, or reported as an error.

The raw streams of the SDKs of OpenAI and Anthropic (`create(stream=True)` in Python,
`create({{stream: true}})` in Node) have no column. They hand over events, and the loop that joins
them is the user's own. The helpers that do have a column read the same raw streams, so what an SDK
does with bytes, errors of the service and a missing end is in their columns.

Clients without such a helper do have a column: those of Amazon Bedrock, Ollama and Cohere, and of
OpenAI for its legacy Completions. Their loop is that of the adapter, and joins as the service's
documentation says. Their notes say so.
"""


def _lines(results: Sequence[Results]) -> Iterator[str]:
    columns, _ = sections_of(results)
    dates = sorted(result.date for result in results)
    # The first words of a version are those of the package itself.
    packages = {(result.client.name.split()[0], result.client.language) for result in results}
    yield _HEAD.format(
        clients=len(results),
        packages=len(packages),
        first=dates[0],
        last=dates[-1],
        runtimes=_runtimes(results),
    )
    yield from _ranking(columns)
    yield ""
    yield from _worst_quirks(quirk_rows(columns)[:_MOST])


def _runtimes(results: Sequence[Results]) -> str:
    """The versions of the languages, such as `: Node 22.1.0, Python 3.11.2`."""
    found = {
        f"{name.title()} {version}"
        for result in results
        for name, version in result.client.libraries.items()
        if name in ("node", "python")
    }
    return f": {', '.join(sorted(found))}" if found else ""


def _ranking(columns: Sequence[Column]) -> Iterator[str]:
    yield "## The ranking"
    yield ""
    yield "For each API, the client with the fewest severe mistakes first. The same mistakes are"
    yield "the same place. A client with less than 80 % of its cases judged has no place."
    for api in PROTOCOLS:
        own = [column for column in columns if column.results.api == api]
        if not own:
            continue
        yield ""
        title = PROTOCOLS.addresses[api].title
        yield f"| # | {title} | version | {' | '.join(STREAM_COSTS)} | right | not judged |"
        yield "|---" * (len(STREAM_COSTS) + 5) + "|"
        for one in own:
            client = one.results.client
            costs = (one.counts[COSTS.index(cost)] for cost in STREAM_COSTS)
            numbers = (*costs, one.right, one.unjudged)
            name, place = f"{client.name} ({client.language})", str(one.place or "–")
            yield _row(place, name, client.version, *map(str, numbers))


def _worst_quirks(rows: Sequence[QuirkRow]) -> Iterator[str]:
    yield f"## The {_MOST} quirks that break the most clients"
    yield ""
    yield "| quirk | clients | at worst | what the server does |"
    yield "|---|---|---|---|"
    for row in rows:
        clients = f"{len(row.broken)} of {len(row.judged)}"
        yield _row(f"`{row.name}`", clients, row.mark.word, row.info.title)
    yield ""
    yield "`mockllm list quirks NAME` says where a quirk was seen, and what is right."


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Writes both files."""
    try:
        results = published()
        OVERVIEW.write_text(overview_page(results), "utf-8")
    except MockLLMError as error:
        sys.exit(str(error))
    PAGE.write_text(page(results), "utf-8")
    _say(f"{PAGE.relative_to(ROOT)}, {OVERVIEW.relative_to(ROOT)}: {len(results)} clients")


def _say(line: str) -> None:
    print(line)


if __name__ == "__main__":
    main()
