"""Takes secrets out of files that are there already: scenarios, tapes, and any other text.

Scenarios and their tapes stay together: a turn has the digest of the request on its tape, and where
the request changes, the digest is made anew.

Pure: files come as bytes and go as bytes.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePath
from typing import Any

import yaml

from mockllm.core.errors import MockLLMError
from mockllm.play.tapes.captured import Captured, Tape, detect_api, dump_tape, load_tape, request_of
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.play.tapes.socket_tape import dump_session, is_socket_tape, load_session
from mockllm.record.redaction.find.bodies import Edit, decode_bytes, edit_text, encode_text
from mockllm.record.redaction.placeholders import Placeholders, edits
from mockllm.record.redaction.redact import Redactor, RequestKey, key_of_request, key_of_route
from mockllm.record.redaction.walk.json_strings import StringValue
from mockllm.record.redaction.walk.yaml_strings import between, edit_yaml, placed_nodes, scalars
from mockllm.scenario.model import Ignored
from mockllm.wire.protocols.values import utf8_text


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
    texts = {name: decode_bytes(data) for name, data in files.items()}
    placeholders = Placeholders(texts.values())
    # YAML first, because people read it: there the numbers begin.
    order = sorted(files, key=lambda name: PurePath(name).suffix not in YAML)
    # A first pass for secrets that only one file shows: they are secrets in the others too.
    for name in order:
        _clean(name, files, texts[name], redactor, placeholders)
    scrubbed: dict[str, Scrubbed] = {}
    for name in order:
        clean = _clean(name, files, texts[name], redactor, placeholders)
        if clean.findings:
            scrubbed[name] = clean
    after = {name: data for name, data in files.items() if name not in scrubbed}
    after |= {clean.file: clean.content for clean in scrubbed.values() if clean.content is not None}
    for name, content in consistent(files, after).items() if scrubbed else ():
        findings = scrubbed[name].findings if name in scrubbed else ()
        scrubbed[name] = Scrubbed(name, findings, content)
    return list(scrubbed.values())


def is_binary(data: bytes) -> bool:
    """Whether a file is no text, as pictures and sound are not: it has zero bytes, or bytes that
    are no UTF-8."""
    return b"\0" in data or utf8_text(data) is None


def _clean(
    name: str,
    files: Mapping[str, bytes],
    text: str,
    redactor: Redactor,
    placeholders: Placeholders,
) -> Scrubbed:
    suffix, data = PurePath(name).suffix, files[name]
    try:
        if suffix == ".jsonl" and is_socket_tape(data):
            return _clean_session(name, load_session(data, name), redactor, placeholders)
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
    clean = edit_yaml(text, read, edits(gone, placeholders))
    comments = between(clean)
    commented = tuple(redactor.for_text(clean, placeholders).finder.in_document(comments))
    kinds = [secret.kind for secret in found]
    findings = [
        replace(one, stays=stays)
        for one, stays in zip(_at(name, text, zip(marks, kinds, strict=True)), stay, strict=True)
    ]
    findings += _at(name, clean, ((secret.parts[0][0], secret.kind) for secret in commented))
    content = edit_text(clean, edits(commented, placeholders))
    return Scrubbed(name, _each(findings), encode_text(content))


def _is_name_of_file(value: StringValue, name: str, files: Container[str]) -> bool:
    named = value.field.name in NAMES_OF_FILES
    return named and str(PurePath(name).parent / value.text) in files


def _clean_text(name: str, text: str, redactor: Redactor, placeholders: Placeholders) -> Scrubbed:
    own = redactor.for_text(text, placeholders)
    found = _at(name, text, ((secret.parts[0][0], secret.kind) for secret in own.finder.find(text)))
    return Scrubbed(name, _each(found), encode_text(own.text(text)))


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
    before = replace(tape.exchange, source=name)
    clean = redactor.exchange(before, placeholders)
    if clean == before:
        return Scrubbed(name, (), None)
    content = dump_tape(replace(tape, exchange=clean))
    return Scrubbed(name, _each(_in_tape(name, before, clean)), content)


def _clean_session(
    name: str, before: SocketSession, redactor: Redactor, placeholders: Placeholders
) -> Scrubbed:
    before = replace(before, source=name)
    clean = redactor.socket(before, placeholders)
    if clean == before:
        return Scrubbed(name, (), None)
    head = [FoundSecret(name, 1, 1, "head of the session")]
    is_same = replace(clean, messages=()) == replace(before, messages=())
    pairs = enumerate(zip(before.messages, clean.messages, strict=True), 2)
    messages = [FoundSecret(name, line, 1, "message") for line, (old, new) in pairs if old != new]
    return Scrubbed(name, _each(messages if is_same else head + messages), dump_session(clean))


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


# Scenarios that stay with their tapes

YAML = (".yaml", ".yml")
"""Endings of scenario files."""

_Files = Mapping[str, bytes]
NAMES_OF_FILES = frozenset(("file", "data_file", "recorded"))
"""Keys of scenarios whose values name a file beside the scenario file."""


def files_named_in(text: str) -> Iterator[str]:
    """The names of files that a scenario file may need: tapes, bodies of answers, long texts."""
    for node in _mappings(text):
        for name, value in _entries(node).items():
            if name in NAMES_OF_FILES and isinstance(value, yaml.ScalarNode):
                yield value.value


def consistent(before: _Files, after: _Files) -> dict[str, bytes]:
    """The scenario files that have to change once more, by their names: those in which the request
    of a tape has another digest now.

    Args:
        before: all files with their secrets.
        after: the same files without; one that could not be searched is not there.
    """
    nodes = [
        node
        for name in after
        if PurePath(name).suffix in YAML
        for node in _recorded_nodes(name, before, after)
    ]
    changes: dict[str, list[Edit]] = {}
    for node, order in zip(nodes, _orders(nodes), strict=True):
        changes.setdefault(node.name, []).extend(node.edits(order))
    return {
        name: encode_text(edit_text(decode_bytes(after[name]), sorted(edits)))
        for name, edits in changes.items()
        if edits
    }


@dataclass(frozen=True, slots=True)
class _RecordedNode:
    """A mapping `recorded: {file: ..., request: ...}` in a scenario file.

    Args:
        name: of the scenario file.
        request: by which the recording is found from now on.
        order: as it is written.
    """

    name: str
    node: yaml.MappingNode
    before: RequestKey
    request: RequestKey
    order: int

    def edits(self, order: int) -> Iterator[Edit]:
        """The changes in the text."""
        entries = _entries(self.node)
        more = ""
        for key, value, old in (
            ("redacted", list(self.request[1]), list(self.before[1])),
            ("hidden", self.request[3], self.before[3]),
            ("order", order, self.order),
        ):
            written = json.dumps(value, ensure_ascii=False)
            node = entries.get(key)
            if node is not None and value != old:
                yield Edit(node.start_mark.index, _end(node), written)
            elif node is None and value:
                more += f"{self._separator()}{key}: {written}"
        if more or self.request != self.before:
            node = entries["request"]
            yield Edit(node.start_mark.index, _end(node), f"'{self.request[0]}'{more}")

    def _separator(self) -> str:
        if self.node.flow_style:
            return ", "
        column: int = self.node.value[0][0].start_mark.column
        return "\n" + " " * column


def _end(node: yaml.Node) -> int:
    """Where a node ends; the end of a list in lines is where the next token begins."""
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    return int(node.end_mark.index)


def _recorded_nodes(name: str, before: _Files, after: _Files) -> Iterator[_RecordedNode]:
    nodes = _mappings(decode_bytes(after[name]))
    for node in sorted(nodes, key=lambda node: node.start_mark.index):
        entries = _entries(node)
        values = {key: value.value for key, value in entries.items()}
        if not (values.get("request") and isinstance(values.get("file"), str)):
            continue
        if not isinstance(entries["request"], yaml.ScalarNode):
            continue
        redacted = entries.get("redacted")
        places, hidden = _texts(redacted), str(values.get("hidden", ""))
        written = values["request"], places, _texts(entries.get("ignore")), hidden
        file = str(PurePath(name).parent / values["file"])
        request = _changed_request(file, before, after, written[2]) or written
        order = str(values.get("order", "0"))
        yield _RecordedNode(name, node, written, request, int(order) if order.isdigit() else 0)


def _texts(node: yaml.Node | None) -> tuple[str, ...]:
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    return tuple(str(item.value) for item in items)


def _changed_request(
    file: str, before: _Files, after: _Files, ignore: Ignored
) -> RequestKey | None:
    if file not in before or file not in after:
        return None
    try:
        old, exchange = (load_tape(files[file], file).exchange for files in (before, after))
        if not exchange.method or _request_of(old) == _request_of(exchange):
            return None
        found = detect_api(exchange)
        if found.protocol is None:
            return key_of_route(exchange, ignore)
        return key_of_request(request_of(exchange, found), exchange.hidden, ignore)
    except MockLLMError:  # it is no tape, or no request
        return None


def _request_of(exchange: Captured) -> tuple[Any, ...]:
    return exchange.url, exchange.request_headers, exchange.request_body


def _orders(nodes: Sequence[_RecordedNode]) -> list[int]:
    """The number of each recording among those of the same request: requests that differed only in
    their secrets are the same now."""
    changed = {node.request for node in nodes if node.request != node.before}
    orders = [node.order for node in nodes]
    numbers: Counter[RequestKey] = Counter()
    for index in sorted(range(len(nodes)), key=lambda index: nodes[index].order):
        request = nodes[index].request
        if request in changed:
            orders[index] = numbers[request]
            numbers[request] += 1
    return orders


def _mappings(text: str) -> list[yaml.MappingNode]:
    """The mappings of a YAML text; none of a text that is no YAML."""
    nodes = (placed.node for placed in placed_nodes(text) or ())
    return [node for node in nodes if isinstance(node, yaml.MappingNode)]


def _entries(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
