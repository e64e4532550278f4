"""Writes the tables of imports into docs/importing.md: `python -m tests.docs.recording_page`.

Every cassette and stream of the recorded corpus is imported into a temporary folder, and so are
all cassettes of a whole test suite; the tables have the results.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mockllm.play.tapes.captured import detect_api
from mockllm.record.importers.batch import ImportResult, import_files
from mockllm.record.importers.reading import Unread
from mockllm.record.recording.store.folder import Folder
from mockllm.wire.protocols import PROTOCOLS
from tests.corpus import read, recorded_files, suite_files, title

PAGE = Path(__file__).parents[2] / "docs" / "importing.md"
BEGIN, END = "<!-- imports: begin -->", "<!-- imports: end -->"

_LONGEST_REASON = 110
_RESULTS = {"neutral": "neutral", "partial": "in part", "skipped": "skipped"}


def page() -> str:
    """The tables for the corpus beside this checkout."""
    paths = recorded_files()
    with tempfile.TemporaryDirectory() as folder:
        results = import_files(paths, Folder(Path(folder)))
    apis = {
        one.source: found.name
        for path in paths
        for one in read(path)
        if not isinstance(one, Unread) and (found := detect_api(one).protocol) is not None
    }
    by_file = {path: [result for result in results if _is_of(result, path)] for path in paths}
    rows = [_row(path, found, apis) for path, found in by_file.items()]
    return "\n".join([*_suite(), "", *_totals(results, apis), "", *_head(), *rows])


def _suite() -> list[str]:
    """What becomes of all cassettes of a test suite in one folder."""
    paths = suite_files()
    with tempfile.TemporaryDirectory() as folder:
        results = import_files(paths, Folder(Path(folder)))
    written = [result.line for result in results if result.line.outcome != "skipped"]
    found = sum(not line.not_found for line in written)
    neutral = sum(line.outcome == "neutral" for line in written)
    named = sum("plays only when it is named" in line.description for line in written)
    return [
        "| a whole test suite in one folder | exchanges |",
        "|---|---|",
        f"| cassettes read | {len(paths)} |",
        f"| entries | {len(results)} |",
        f"| written | {len(written)} |",
        f"| neutral | {neutral} ({neutral / len(written):.1%} of those written) |",
        f"| answered with their own bytes when their request is sent again | {found} "
        f"({found / len(written):.1%}) |",
        f"| play only when named | {named} |",
    ]


def _is_of(one: ImportResult, path: Path) -> bool:
    return one.line.source in (str(path), f"{path}#{one.line.source.rpartition('#')[2]}")


def _totals(results: Iterable[ImportResult], apis: dict[str, str]) -> list[str]:
    counts = Counter((_api(result, apis), result.line.outcome) for result in results)
    lines = [
        "| API | exchanges | neutral | in part | skipped |",
        "|---|---|---|---|---|",
    ]
    names = {name for name, _ in counts}
    for name in (*(name for name in (*PROTOCOLS, _ROUTES) if name in names), "all"):
        sums = [
            sum(
                n
                for (api, outcome), n in counts.items()
                if outcome == result and name in (api, "all")
            )
            for result in _RESULTS
        ]
        lines.append(f"| {name} | {sum(sums)} | {' | '.join(map(str, sums))} |")
    return lines


_ROUTES = "no model"


def _api(one: ImportResult, apis: dict[str, str]) -> str:
    return apis.get(one.line.source, _ROUTES)


def _head() -> list[str]:
    return ["| recording | API | exchanges | result |", "|---|---|---|---|"]


def _row(path: Path, found: list[ImportResult], apis: dict[str, str]) -> str:
    names = ", ".join(dict.fromkeys(_api(one, apis) for one in found))
    counts = Counter(one.line.outcome for one in found)
    reasons = dict.fromkeys(filter(None, map(_reason, found)))
    result = ", ".join(
        name if len(found) == 1 else f"{counts[outcome]} {name}"
        for outcome, name in _RESULTS.items()
        if counts[outcome]
    )
    why = f" ({_short(', '.join(reasons))})" if reasons else ""
    return f"| {title(path)} | {names} | {len(found)} | {result}{why} |"


def _reason(one: ImportResult) -> str:
    """What could not be read of an answer, or why an exchange was skipped."""
    if one.line.outcome == "skipped":
        return one.details
    kept = re.match(r"only the tape has all of it \((.*?)\)(?:; |$)", one.details)
    return f"`{kept[1]}`" if kept else ""


def _short(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return plain if len(plain) <= _LONGEST_REASON else plain[: _LONGEST_REASON - 1] + "…"


def between(text: str) -> str:
    """The text between the marks of a page."""
    return text.partition(f"{BEGIN}\n\n")[2].partition(f"\n\n{END}")[0]


def with_table(text: str, table: str) -> str:
    """The page with this table between its marks."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    if not recorded_files():
        raise SystemExit("there is no corpus of recorded traffic beside this checkout")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), page()), encoding="utf-8")
    print(f"{PAGE} written")
