"""The page docs/maintainers/coverage.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.coverage.played import Played, played
from tools.coverage.reasons import FOLDER, Reason, matching, problems, read
from tools.coverage.sdk import SDKS, tree

PAGE = Path(__file__).parents[2] / "docs" / "maintainers" / "coverage.md"

_TITLES = {
    "chat": "OpenAI Chat Completions",
    "responses": "OpenAI Responses",
    "anthropic": "Anthropic Messages",
    "gemini": "Gemini",
    "agui": "AG-UI",
    "completions": "OpenAI Completions (legacy)",
    "cohere": "Cohere Chat",
}

_HEAD = """# What the kit plays

<!-- Written by `python -m tools.coverage`; edit tools/coverage/reasons/ instead. -->

{conclusion}

The types of each official SDK list the events, parts, fields and enumeration values of a stream.
For each of them this page names a case of the checking kit that plays it, or the reason why none
does. A test fails for an item without both. Where several cases play an item, the first one is
named, and cases without a quirk come first. A field counts as played where its value is not null.
`python -m tools.unions` compares these types, those of betas and of bodies too, with the encoders.

How to read an item:

| item | meaning |
|---|---|
| `choices[].delta.content` | a field; `[]` is an element of a list |
| `response.completed/response` | a field of an event of that type |
| `response.output_item.added/item[reasoning]` | the member of a union with that `type` |
| `choices[].finish_reason=stop` | a value of an enumeration |
| `Response/usage` | a field of a type that occurs in several places; it is listed once |

| API | types | items | played | not played, with a reason |
|---|---|---:|---:|---:|
"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of one API."""

    api: str
    items: list[str]
    played: Played
    reasons: list[Reason]

    @property
    def problems(self) -> list[str]:
        """Items without case and reason, and reasons that are not needed."""
        return problems(self.items, self.played.items, self.reasons)

    @property
    def playing(self) -> int:
        """How many items are played."""
        return sum(item in self.played.items for item in self.items)

    @property
    def summary(self) -> str:
        """The numbers, in one line."""
        return (
            f"{self.playing} of {len(self.items)} items played by {self.played.cases} cases, "
            f"{len(self.problems)} problems"
        )


@cache
def coverage(api: str) -> Coverage:
    """The coverage of an API."""
    types = tree(api)
    return Coverage(api, types.items(), played(api, types), read(FOLDER / f"{api}.yaml"))


def page(found: Sequence[Coverage]) -> str:
    """The text of the page."""
    items = sum(len(one.items) for one in found)
    playing = sum(one.playing for one in found)
    conclusion = (
        f"The SDKs' types list {items:,} items; the kit's cases play {playing:,} of them.\n"
        f"For the other {items - playing:,} a reason is written down."
    )
    rows = [
        f"| [{_TITLES[one.api]}](#{_anchor(_TITLES[one.api])}) | {SDKS[one.api].source} "
        f"| {len(one.items)} | {one.playing} | {len(one.items) - one.playing} |"
        for one in found
    ]
    sections = (line for one in found for line in _section(one))
    return _HEAD.format(conclusion=conclusion) + "\n".join([*rows, *sections]) + "\n"


def _anchor(title: str) -> str:
    kept = "".join(char for char in title.lower() if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")


def _section(one: Coverage) -> Iterator[str]:
    yield from ("", f"## {_TITLES[one.api]}", "", "### Played", "")
    played_items = {item: one.played.items[item] for item in one.items if item in one.played.items}
    yield from _table(played_items)
    unlisted = one.played.unlisted
    if unlisted:
        yield from ("", "### Played, and not in the SDK's types", "")
        yield "Compatible servers and other versions of the service send these."
        yield ""
        yield from _table(dict(sorted(unlisted.items())))
    missing = [item for item in one.items if item not in one.played.items]
    yield from ("", "### Not played", "")
    yield from ("In a reason's items, `*` stands for any characters.", "")
    yield from _reasons(missing, one.reasons)


def _table(played_items: dict[str, str]) -> Iterator[str]:
    """Rows of items that one case plays, in the order of the items."""
    yield "| item | case |"
    yield "|---|---|"
    for item, name in played_items.items():
        yield f"| {_code(item)} | {_code(name)} |"


def _reasons(missing: Iterable[str], reasons: Sequence[Reason]) -> Iterator[str]:
    """A row for each reason, with the number of its items."""
    counts = Counter(matching(item, reasons) for item in missing)
    rows: dict[str, list[Reason]] = {}
    for reason in reasons:
        if counts[reason]:
            rows.setdefault(reason.text, []).append(reason)
    yield "| reason | items | how many |"
    yield "|---|---|---:|"
    for text, same in rows.items():
        patterns = ", ".join(_code(reason.pattern) for reason in same)
        yield f"| {_cell(text)} | {patterns} | {sum(counts[reason] for reason in same)} |"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
