"""Takes secrets out of files that are there already: scenarios, tapes, and any other text.

Pure: files come as bytes and go as bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePath

from mockllm.errors import MockLLMError, ScenarioError
from mockllm.redaction.placeholders import Placeholders
from mockllm.redaction.redact import Redactor
from mockllm.redaction.replacing import edited, edits
from mockllm.redaction.yaml_strings import between, changed, scalars
from mockllm.replay.loading import loads
from mockllm.scenario.model import Scenario
from mockllm.tapes.captured import Captured
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import RecordedRequest, Tape, digest

__all__ = ["Finding", "Scrubbed", "scrub"]


_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A secret of some kind in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    kind: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.kind}"


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A file that had secrets.

    Args:
        content: without them; None where it could not be searched.
    """

    file: str
    findings: tuple[Finding, ...]
    content: bytes | None


def scrub(files: Mapping[str, bytes], redactor: Redactor) -> list[Scrubbed]:
    """Those of some files that have secrets, without them.

    The same secret has the same placeholder in all of them. A tape that belonged to its turn
    before still does.
    """
    texts = {name: data.decode("utf-8", "surrogateescape") for name, data in files.items()}
    placeholders = Placeholders(texts.values())
    # YAML first, because people read it: there the numbers begin.
    order = sorted(files, key=lambda name: PurePath(name).suffix not in _YAML)
    # A first pass for secrets that only one file shows: they are secrets in the others too.
    for name in order:
        _clean(name, files[name], texts[name], redactor, placeholders)
    scrubbed: dict[str, Scrubbed] = {}
    for name in order:
        one = _clean(name, files[name], texts[name], redactor, placeholders)
        if one.findings:
            scrubbed[name] = one
    _keep_digests(files, texts, scrubbed)
    return list(scrubbed.values())


def _clean(
    name: str, data: bytes, text: str, redactor: Redactor, placeholders: Placeholders
) -> Scrubbed:
    suffix = PurePath(name).suffix
    if suffix == ".jsonl" and data.startswith(b'{"mockllm-tape"'):
        try:
            return _clean_tape(name, load_tape(data, name), redactor, placeholders)
        except MockLLMError as error:
            return Scrubbed(name, (Finding(name, 1, 1, f"cannot be searched: {error}"),), None)
    if suffix in _YAML:
        return _clean_yaml(name, text, redactor, placeholders)
    return _clean_text(name, text, redactor, placeholders)


def _clean_yaml(name: str, text: str, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    """A YAML text: first the values of its scalars, then its comments."""
    read = scalars(text)
    if read is None:
        return _clean_text(name, text, redactor, placeholders)
    found = list(redactor.for_text(read.text, placeholders).finder.search(read.document))
    starts = [value.start for value in read.document.values]
    marks = [
        read.nodes[bisect_right(starts, one.parts[0][0]) - 1].start_mark.index for one in found
    ]
    clean = changed(text, read, edits(found, placeholders))
    comments = between(clean)
    commented = tuple(redactor.for_text(clean, placeholders).finder.search(comments))
    findings = _at(name, text, zip(marks, [one.kind for one in found], strict=True))
    findings += _at(name, clean, ((one.parts[0][0], one.kind) for one in commented))
    content = edited(clean, edits(commented, placeholders))
    return Scrubbed(name, _each(findings), _bytes(content))


def _clean_text(name: str, text: str, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    own = redactor.for_text(text, placeholders)
    found = _at(name, text, ((one.parts[0][0], one.kind) for one in own.finder.find(text)))
    return Scrubbed(name, _each(found), _bytes(own.text(text)))


def _clean_tape(name: str, tape: Tape, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    before = tape.request or RecordedRequest("", "")
    captured = Captured(
        before.method,
        before.url,
        before.headers,
        before.body,
        tape.status,
        tape.headers,
        tape.chunks,
        tape.cut,
        source=name,
    )
    clean = redactor.captured(captured, placeholders)
    if clean == captured:
        return Scrubbed(name, (), None)
    findings = [*_in_head(name, captured, clean), *_in_chunks(name, captured, clean)]
    request = RecordedRequest(clean.method, clean.url, clean.request_headers, clean.request_body)
    tape = replace(
        tape,
        headers=clean.headers,
        chunks=clean.chunks,
        request=None if tape.request is None else request,
    )
    return Scrubbed(name, _each(findings), dump_tape(tape))


def _in_head(name: str, before: Captured, after: Captured) -> Iterable[Finding]:
    """The secrets in the first line of a tape."""
    if before.url != after.url:
        yield Finding(name, 1, 1, "URL of the request")
    if before.request_headers != after.request_headers:
        yield Finding(name, 1, 1, "headers of the request")
    if before.request_body != after.request_body:
        yield Finding(name, 1, 1, "body of the request")
    if before.headers != after.headers and before.chunks == after.chunks:
        yield Finding(name, 1, 1, "headers of the answer")


def _in_chunks(name: str, before: Captured, after: Captured) -> Iterable[Finding]:
    """The first chunk with a secret; each chunk is a line."""
    if len(before.chunks) != len(after.chunks):
        yield Finding(name, 2, 1, "body of the answer, which was compressed")
        return
    for line, (old, new) in enumerate(zip(before.chunks, after.chunks, strict=True), 2):
        if old != new:
            yield Finding(name, line, 1, "body of the answer")
            return


def _at(name: str, text: str, found: Iterable[tuple[int, str]]) -> list[Finding]:
    """Findings from positions in a text and kinds."""
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    findings = []
    for at, kind in found:
        line = bisect_right(starts, at) - 1
        findings.append(Finding(name, line + 1, at - starts[line] + 1, kind))
    return findings


def _each(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One for each position, in their order."""
    by_position: dict[tuple[int, int], Finding] = {}
    for one in findings:
        by_position.setdefault((one.line, one.column), one)
    return tuple(sorted(by_position.values()))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _keep_digests(
    files: Mapping[str, bytes], texts: Mapping[str, str], scrubbed: dict[str, Scrubbed]
) -> None:
    """Gives the tapes of turns whose text was changed the digest of the new text."""
    for name in [name for name in scrubbed if PurePath(name).suffix in _YAML]:
        content = scrubbed[name].content
        if content is None:
            continue
        before = _scenarios(texts[name])
        after = _scenarios(content.decode("utf-8", "surrogateescape"))
        for old, new in zip(before, after, strict=False):
            _keep_digest(PurePath(name), old, new, files, scrubbed)


def _keep_digest(
    file: PurePath,
    old: Scenario,
    new: Scenario,
    files: Mapping[str, bytes],
    scrubbed: dict[str, Scrubbed],
) -> None:
    for was, is_ in zip(old.turns, new.turns, strict=False):
        if was.recorded is None:
            continue
        name = str(file.parent / was.recorded.file)
        one = scrubbed.get(name)
        data = one.content if one is not None else files.get(name)
        if data is None:
            continue
        try:
            tape = load_tape(data, name)
        except ScenarioError:
            continue
        if tape.digest == digest(was, tape.api) != digest(is_, tape.api):
            tape = replace(tape, digest=digest(is_, tape.api))
            findings = one.findings if one is not None else ()
            scrubbed[name] = Scrubbed(name, findings, dump_tape(tape))


def _scenarios(text: str) -> tuple[Scenario, ...]:
    try:
        return loads(text)
    except ScenarioError:
        return ()
