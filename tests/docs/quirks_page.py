"""Writes docs/quirks.md: `python -m tests.docs.quirks_page`. A test compares it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.base import Quirk
from mockllm.wire.protocols import PROTOCOLS

APIS = tuple(PROTOCOLS)

PAGE = Path(__file__).parents[2] / "docs" / "quirks.md"

_GROUPS = {
    "A": "Chat Completions: which call a fragment belongs to",
    "B": "Chat Completions: arguments",
    "C": "Chat Completions: finish and end",
    "D": "Chat Completions: several calls, and the envelope",
    "E": "Usage",
    "F": "The framing of events",
    "G": "Errors inside an answer of status 200",
    "H": "Anthropic Messages",
    "I": "OpenAI Responses",
    "J": "Google Gemini",
    "K": "AG-UI",
    "L": "Ollama",
    "O": "OpenAI Completions",
    "N": "Cohere",
    "M": "Amazon Bedrock Converse",
    "P": "Gemini Interactions",
}

_HEAD = """\
# Quirks of real servers

A quirk is a way in which the streams of real servers differ from the rules of their protocol, or
from the reference service. mockllm can play each one with any scenario. To see one in a terminal:
`mockllm show sample-call --quirk chat-index-missing`.

| to play a quirk | do this |
|---|---|
| in a turn of a scenario | `wire: {quirks: [chat-index-missing]}` |
| in all answers of a server | `mockllm serve scenarios/ --quirk chat-index-missing` |
| in the answer to one request | send the header `x-mockllm-quirk: chat-index-missing` |
| in a test | `mockllm_session.use("weather", quirks=["chat-index-missing"])` |
| against your accumulator or client | use the [checking kit](testing.md), which plays all of them |

A quirk changes the stream that mockllm would send otherwise. It leaves two kinds of answers as they
are: those in which it finds nothing to change (a quirk of tool calls in an answer without calls),
and those of a protocol in which it does not occur.

The columns of the tables:

- **name**: with the names of its variants, each after a colon. Play one as `NAME:VARIANT`.
- **right**: the outcome of a correct client. `same`: the answer as without the quirk, except where
  the quirk changes the answer itself (another finish reason); `error`: a clear error; `either`: one
  or the other.
- **what**: the difference, with the names of the protocols if there are several.
- **where**: the servers in which it was seen.
- **a correct client**: what it does.

`mockllm list quirks NAME` describes a quirk in full, with the bytes that it changes, the reports in
which it was found, and the clause that allows it. For a quirk that has neither, a client is
[not blamed](check.md#what-counts), and it may refuse one that breaks its protocol. A report is
named because its text describes the quirk; whether its author was right was not tried. How
[well-known clients](clients.md) handle each quirk was measured.

`python -m tests.docs.quirks_page` generates this page; a test compares the two.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_groups()]) + "\n"


def _groups() -> Iterator[str]:
    for letter, quirks in groupby(QUIRKS.values(), key=lambda quirk: quirk.prose.group):
        yield f"## {_GROUPS[letter]}"
        yield ""
        yield "| name | right | what | where | a correct client |"
        yield "|---|---|---|---|---|"
        for quirk in quirks:
            yield _row(quirk)
        yield ""


def _row(quirk: Quirk) -> str:
    names = [f"`{quirk.name}`"]
    names += [f"`:{variant.name}`" for variant in quirk.variants if variant.name]
    apis = f" ({', '.join(quirk.apis)})" if len(quirk.only) > 1 else ""
    cells = (
        " ".join(names),
        quirk.prose.right,
        quirk.prose.title + apis,
        quirk.prose.servers,
        quirk.prose.correct,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE} written")
