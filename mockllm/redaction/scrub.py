"""Takes secrets out of files that are there already: scenarios, tapes, and any other text.

Pure: files come as bytes and go as bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePath

from mockllm.errors import MockLLMError
from mockllm.redaction.placeholders import Placeholders, edited, edits
from mockllm.redaction.redact import Redactor
from mockllm.redaction.scrubbed_scenarios import NAMES_OF_FILES, YAML, consistent
from mockllm.redaction.walk.json_strings import StringValue
from mockllm.redaction.walk.yaml_strings import between, changed, scalars
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import captured_of
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import RecordedRequest, Tape


@dataclass(frozen=True, slots=True, order=True)
class FoundSecret:
    """A secret of some kind in a file; lines and columns count from 1.

    Args:
        stays: whether it is in the name of another file, which the user has to rename.
    """

    file: str
    line: int
    column: int
    kind: str
    stays: bool = False

    def __str__(self) -> str:
        stays = " in the name of a file; rename that file and write its new name here"
        return f"{self.file}:{self.line}:{self.column}: {self.kind}{stays if self.stays else ''}"


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A file that had secrets.

    Args:
        content: without them; None where it could not be searched.
    """

    file: str
    findings: tuple[FoundSecret, ...]
    content: bytes | None


def scrub(files: Mapping[str, bytes], redactor: Redactor) -> list[Scrubbed]:
    """Those of some files that have secrets, without them.

    The same secret has the same placeholder in all of them. A tape that belonged to its turn
    before still does, and its request still finds it.
    """
    texts = {name: data.decode("utf-8", "surrogateescape") for name, data in files.items()}
    placeholders = Placeholders(texts.values())
    # YAML first, because people read it: there the numbers begin.
    order = sorted(files, key=lambda name: PurePath(name).suffix not in YAML)
    # A first pass for secrets that only one file shows: they are secrets in the others too.
    for name in order:
        _clean(name, files, texts[name], redactor, placeholders)
    scrubbed: dict[str, Scrubbed] = {}
    for name in order:
        one = _clean(name, files, texts[name], redactor, placeholders)
        if one.findings:
            scrubbed[name] = one
    after = {name: data for name, data in files.items() if name not in scrubbed}
    after |= {one.file: one.content for one in scrubbed.values() if one.content is not None}
    for name, content in consistent(files, after).items() if scrubbed else ():
        findings = scrubbed[name].findings if name in scrubbed else ()
        scrubbed[name] = Scrubbed(name, findings, content)
    return list(scrubbed.values())


def is_binary(data: bytes) -> bool:
    """Whether a file is no text, as pictures and sound are not: it has zero bytes, or bytes that
    are no UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return b"\0" in data


def _clean(
    name: str,
    files: Mapping[str, bytes],
    text: str,
    redactor: Redactor,
    placeholders: Placeholders,
) -> Scrubbed:
    suffix, data = PurePath(name).suffix, files[name]
    try:
        if suffix == ".jsonl" and data.startswith(b'{"mockllm-tape"'):
            return _clean_tape(name, load_tape(data, name), redactor, placeholders)
        if suffix in YAML:
            return _clean_yaml(name, files, text, redactor, placeholders)
        return _clean_text(name, text, redactor, placeholders)
    except MockLLMError as error:
        return Scrubbed(name, (FoundSecret(name, 1, 1, f"cannot be searched: {error}"),), None)


def _clean_yaml(
    name: str,
    files: Container[str],
    text: str,
    redactor: Redactor,
    placeholders: Placeholders,
) -> Scrubbed:
    """A YAML text: first the values of its scalars, then its comments. The names of files that are
    there stay."""
    read = scalars(text)
    if read is None:
        return _clean_text(name, text, redactor, placeholders)
    found = list(redactor.for_text(read.text, placeholders).finder.in_document(read.document))
    starts = [value.start for value in read.document.values]
    values = [bisect_right(starts, secret.parts[0][0]) - 1 for secret in found]
    stay = [_is_name_of_file(read.document.values[index], name, files) for index in values]
    marks = [read.nodes[index].start_mark.index for index in values]
    gone = [secret for secret, stays in zip(found, stay, strict=True) if not stays]
    clean = changed(text, read, edits(gone, placeholders))
    comments = between(clean)
    commented = tuple(redactor.for_text(clean, placeholders).finder.in_document(comments))
    kinds = [secret.kind for secret in found]
    findings = [
        replace(one, stays=stays)
        for one, stays in zip(_at(name, text, zip(marks, kinds, strict=True)), stay, strict=True)
    ]
    findings += _at(name, clean, ((secret.parts[0][0], secret.kind) for secret in commented))
    content = edited(clean, edits(commented, placeholders))
    return Scrubbed(name, _each(findings), _bytes(content))


def _is_name_of_file(value: StringValue, name: str, files: Container[str]) -> bool:
    named = value.field.name in NAMES_OF_FILES
    return named and str(PurePath(name).parent / value.text) in files


def _clean_text(name: str, text: str, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    own = redactor.for_text(text, placeholders)
    found = _at(name, text, ((secret.parts[0][0], secret.kind) for secret in own.finder.find(text)))
    return Scrubbed(name, _each(found), _bytes(own.text(text)))


_HEAD = {
    "URL of the request": "url",
    "headers of the request": "request_headers",
    "body of the request": "request_body",
    "headers of the answer": "headers",
    "reason phrase of the answer": "reason",
    "trailers of the answer": "trailers",
}
"""What the first line of a tape has, by the names in reports."""


def _clean_tape(name: str, tape: Tape, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    before = replace(captured_of(tape), source=name)
    clean = redactor.captured(before, placeholders)
    if clean == before:
        return Scrubbed(name, (), None)
    request = RecordedRequest(clean.method, clean.url, clean.request_headers, clean.request_body)
    tape = replace(
        tape,
        headers=clean.headers,
        chunks=clean.chunks,
        reason=clean.reason,
        trailers=clean.trailers,
        request=None if tape.request is None else request,
    )
    return Scrubbed(name, _each(_in_tape(name, before, clean)), dump_tape(tape))


def _in_tape(name: str, before: Captured, after: Captured) -> Iterator[FoundSecret]:
    """The secrets in the first line of a tape, and the first chunk with one; each is a line."""
    for what, field in _HEAD.items():
        # With the body its length changes, too.
        follows = field == "headers" and before.chunks != after.chunks
        if not follows and getattr(before, field) != getattr(after, field):
            yield FoundSecret(name, 1, 1, what)
    if len(before.chunks) != len(after.chunks):
        yield FoundSecret(name, 2, 1, "body of the answer, which was compressed")
        return
    pairs = enumerate(zip(before.chunks, after.chunks, strict=True), 2)
    line = next((line for line, (old, new) in pairs if old != new), None)
    if line is not None:
        yield FoundSecret(name, line, 1, "body of the answer")


def _at(name: str, text: str, found: Iterable[tuple[int, str]]) -> list[FoundSecret]:
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    findings = []
    for at, kind in found:
        line = bisect_right(starts, at) - 1
        findings.append(FoundSecret(name, line + 1, at - starts[line] + 1, kind))
    return findings


def _each(findings: Iterable[FoundSecret]) -> tuple[FoundSecret, ...]:
    by_position: dict[tuple[int, int], FoundSecret] = {}
    for finding in findings:
        by_position.setdefault((finding.line, finding.column), finding)
    return tuple(sorted(by_position.values()))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
