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
from mockllm.redaction.placeholders import Names
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
    """A secret in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.what}"


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
    names = Names(texts.values())
    # The YAML first, so that numbers begin where people read.
    order = sorted(files, key=lambda name: PurePath(name).suffix not in _YAML)
    # What only one file tells as a secret is a secret in the others too.
    for name in order:
        _clean(name, files[name], texts[name], redactor, names)
    scrubbed: dict[str, Scrubbed] = {}
    for name in order:
        one = _clean(name, files[name], texts[name], redactor, names)
        if one.findings:
            scrubbed[name] = one
    _keep_digests(files, texts, scrubbed)
    return list(scrubbed.values())


def _clean(name: str, data: bytes, text: str, redactor: Redactor, names: Names) -> Scrubbed:
    suffix = PurePath(name).suffix
    if suffix == ".jsonl" and data.startswith(b'{"mockllm-tape"'):
        try:
            return _clean_tape(name, load_tape(data, name), redactor, names)
        except MockLLMError as error:
            return Scrubbed(name, (Finding(name, 1, 1, f"cannot be searched: {error}"),), None)
    if suffix in _YAML:
        return _clean_yaml(name, text, redactor, names)
    return _clean_text(name, text, redactor, names)


def _clean_yaml(name: str, text: str, redactor: Redactor, names: Names) -> Scrubbed:
    """A YAML text first by what its scalars say, then by its comments."""
    read = scalars(text)
    if read is None:
        return _clean_text(name, text, redactor, names)
    found = list(redactor.hiding(read.text, names).finder.search(read.document))
    starts = [leaf.start for leaf in read.document.leaves]
    marks = [
        read.nodes[bisect_right(starts, one.parts[0][0]) - 1].start_mark.index for one in found
    ]
    clean = changed(text, read, edits(found, names))
    gaps = between(clean)
    beside = tuple(redactor.hiding(clean, names).finder.search(gaps))
    findings = _at(name, text, zip(marks, [one.what for one in found], strict=True))
    findings += _at(name, clean, ((one.parts[0][0], one.what) for one in beside))
    return Scrubbed(name, _each(findings), _bytes(edited(clean, edits(beside, names))))


def _clean_text(name: str, text: str, redactor: Redactor, names: Names) -> Scrubbed:
    hiding = redactor.hiding(text, names)
    found = _at(name, text, ((one.parts[0][0], one.what) for one in hiding.finder.find(text)))
    return Scrubbed(name, _each(found), _bytes(hiding.text(text)))


def _clean_tape(name: str, tape: Tape, redactor: Redactor, names: Names) -> Scrubbed:
    asked = tape.request or RecordedRequest("", "")
    captured = Captured(
        asked.method,
        asked.url,
        asked.headers,
        asked.body,
        tape.status,
        tape.headers,
        tape.chunks,
        tape.cut,
        source=name,
    )
    clean = redactor.captured(captured, names)
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
    """What the first line of a tape had to hide."""
    if before.url != after.url:
        yield Finding(name, 1, 1, "URL of the request")
    if before.request_headers != after.request_headers:
        yield Finding(name, 1, 1, "headers of the request")
    if before.request_body != after.request_body:
        yield Finding(name, 1, 1, "body of the request")
    if before.headers != after.headers and before.chunks == after.chunks:
        yield Finding(name, 1, 1, "headers of the answer")


def _in_chunks(name: str, before: Captured, after: Captured) -> Iterable[Finding]:
    """The chunks that had something to hide, each of which is a line."""
    if len(before.chunks) != len(after.chunks):
        yield Finding(name, 2, 1, "body of the answer, which was compressed")
        return
    for line, (old, new) in enumerate(zip(before.chunks, after.chunks, strict=True), 2):
        if old != new:
            yield Finding(name, line, 1, "body of the answer")
            return


def _at(name: str, text: str, found: Iterable[tuple[int, str]]) -> list[Finding]:
    """What was found at places of a text."""
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    findings = []
    for at, what in found:
        line = bisect_right(starts, at) - 1
        findings.append(Finding(name, line + 1, at - starts[line] + 1, what))
    return findings


def _each(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One for each place, in their order."""
    places: dict[tuple[int, int], Finding] = {}
    for one in findings:
        places.setdefault((one.line, one.column), one)
    return tuple(sorted(places.values()))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _keep_digests(
    files: Mapping[str, bytes], texts: Mapping[str, str], scrubbed: dict[str, Scrubbed]
) -> None:
    """Gives the tapes of turns that now read differently the digest of what they read now."""
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
