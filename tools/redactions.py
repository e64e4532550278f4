"""Lists what redaction changes in recorded exchanges: `python -m tools.redactions PATH ...`.

Each line is a kind of change with the number of exchanges that have it and a few examples, which
are secret: read the list, and do not publish it. `--counts` leaves the examples out.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from mockllm.core.errors import MockLLMError
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.file_formats import READERS, detect, files
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.redaction.credentials import parameters
from mockllm.record.redaction.find.bodies import body_of
from mockllm.record.redaction.find.kept_places import KNOWN
from mockllm.record.redaction.placeholders import Placeholders
from mockllm.record.redaction.redact import Redactor


class Change(NamedTuple):
    """What was replaced in an exchange.

    Args:
        place: `url`, `request`, `response`, or a header, such as `response set-cookie`.
        kind: of the secret; `path` or `?name` of a URL; `header` for a value.
        value: what was there.
    """

    place: str
    kind: str
    value: str


_FOLLOW = frozenset(("content-encoding", "content-length"))
"""Headers that follow the body."""


def exchanges(paths: Iterable[Path]) -> Iterator[Captured]:
    """The exchanges in files and folders of recordings of other tools."""
    for file in map(ForeignFile, files(paths)):
        kind = detect(file)
        if kind in READERS:
            yield from (entry for entry in READERS[kind](file) if isinstance(entry, Captured))


def changes(redactor: Redactor, captured: Captured) -> Iterator[Change]:
    """What redaction replaces in an exchange.

    Raises:
        WireError: a body cannot be decompressed.
    """
    placeholders = Placeholders()
    clean = redactor.exchange(captured, placeholders)
    before, after = urlsplit(captured.url), urlsplit(clean.url)
    if before.netloc != after.netloc or before.path != after.path:
        yield Change("url", "path", before.path)
    values = zip(parameters(before.query), parameters(after.query), strict=True)
    yield from (
        Change("url", f"?{name}", value) for (name, value), (_, new) in values if value != new
    )
    plain = captured.plain()
    for place, data in (("request", plain.request_body), ("response", plain.body)):
        text = body_of(data).text
        seen = set()
        for secret in redactor.for_text(text, placeholders).finder.find(text):
            if secret.kind != KNOWN or secret.parts not in seen:
                yield from (Change(place, secret.kind, value) for value in secret.secrets())
            seen.add(secret.parts)
    headers = [pair for pair in captured.headers if pair[0] not in _FOLLOW]
    kept = [pair for pair in clean.headers if pair[0] not in _FOLLOW]
    for (name, value), after in zip(headers, kept, strict=True):
        if after[1] != value:
            yield Change(f"response {name}", "header", value)


def main() -> None:
    """Prints the changes, the most frequent first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--counts", action="store_true")
    options = parser.parse_args()
    redactor = Redactor()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    count = 0
    for captured in exchanges(options.paths):
        count += 1
        try:
            for change in changes(redactor, captured):
                found[change.place, change.kind].append(change.value)
        except MockLLMError as error:
            print(f"{captured.source}: {error}")
    print(f"{count} exchanges")
    for (place, kind), values in sorted(found.items(), key=lambda item: -len(item[1])):
        examples = () if options.counts else sorted(set(values))[:12]
        print(
            f"{len(values):6} {place}: {kind}",
            *(f"       {text[:120]!r}" for text in examples),
            sep="\n",
        )


if __name__ == "__main__":
    main()
