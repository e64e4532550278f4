"""YAML text to trees of located nodes, within bounds.

The trees are composed from the parser's events and not by PyYAML's composer: that one ends the
process with a segmentation fault for some ten thousand `- `, and depth and aliases must be bounded
before any recursion or exponential growth ("billion laughs"). No tag but
`!!str` is known, so no Python object can be constructed. A mistake that does not stop the parser
(a duplicate key) is noted; any other (syntax, a bound) raises `ScenarioError`.

Readers do not track paths: only what a problem is about is located. A path is a tuple of keys and
indices: `("turns", 0, "reply", 1, "text")`, shown as `turns[0].reply[1].text`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from mockllm.core.errors import Problem, ScenarioError
from mockllm.core.record import record
from mockllm.core.text import join_pairs

MAX_DEPTH = 100
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
MAX_NODES = 250_000
"""Nodes in one document; a node counts again for each alias of it."""

PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STR = "tag:yaml.org,2002:str"
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_NO_CHARACTER = "invalid Unicode character escape"
_BEYOND_UNICODE = "an escape names no character; the last one is \\U0010FFFF"

YamlMark = Any
"""PyYAML's position in a text: `line` and `column`, from 0."""


@dataclass(slots=True)
class Scalar:
    """A string, number, boolean or null. Only a `plain` one, without quotes, can be no string."""

    value: str
    plain: bool
    mark: YamlMark


@dataclass(slots=True)
class Sequence:
    """A list."""

    items: list[Node]
    mark: YamlMark


@dataclass(slots=True)
class Mapping:
    """A mapping; `keys` has the mark of each key."""

    entries: dict[str, Node]
    keys: dict[str, YamlMark]
    mark: YamlMark


Node = Scalar | Sequence | Mapping


@dataclass(slots=True)
class YamlDocument:
    """One document and the mistakes noted while it was composed: node, mark, message."""

    root: Node
    notes: list[tuple[Node, YamlMark, str]]


def documents(text: str, name: str, parser: Any = PARSER) -> Iterator[YamlDocument]:
    """The documents of a YAML stream, one by one, with a PyYAML loader class for its events.

    An escape may be half of a surrogate pair, as in JSON, and two are the character of both.

    Raises:
        ScenarioError: broken syntax, or a document beyond its bounds. The documents before it
            have been yielded by then.
    """
    count = 0
    try:
        for document in _compose(parser(text), name):
            yield document
            count += 1
    except yaml.MarkedYAMLError as error:
        if _NO_CHARACTER not in (error.problem or "") or parser is yaml.SafeLoader:
            raise ScenarioError([_syntax_problem(text, name, error)]) from None
        # libyaml refuses halves of pairs. The parser in Python reads them, and takes ten times as
        # long, so that it reads only what has some.
        yield from islice(documents(text, name, yaml.SafeLoader), count, None)
    except yaml.reader.ReaderError:
        raise ScenarioError([_unprintable_problem(text, name)]) from None


def _compose(loader: Any, name: str) -> Iterator[YamlDocument]:
    def next_event() -> Any:
        try:
            return loader.get_event()
        except (ValueError, OverflowError):  # `chr`, in the parser in Python
            mark = loader.get_mark()
            raise yaml.MarkedYAMLError(problem=_BEYOND_UNICODE, problem_mark=mark) from None

    while (event := next_event()).__class__ is not StreamEndEvent:
        if event.__class__ is DocumentStartEvent:
            yield _Composer(next_event, name).document()


def _syntax_problem(text: str, name: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    reason = ": ".join(part for part in (error.context, error.problem) if part)
    if "cannot start any token" in reason:
        at = _character(text, mark)
        advice = "indent with spaces" if at == "\t" else "put the value in quotes"
        reason = f"nothing may begin with {at!r} here; {advice}"
    elif _is_half_quoted(text, error):
        reason = f"a text with : {{ }} [ ] ' \" * & or # needs quotes ({error.problem})"
    elif error.context and re.match("[<=>]{7}", _line(text, error.context_mark)):
        mark = error.context_mark
        reason = "the line is a mark of a merge conflict; keep one of the two sides"
    elif advice_ := next((advice for words, advice in _ADVICE if words in reason), None):
        if "unexpected end of stream" in reason:
            mark = error.context_mark or mark  # where the quote is opened
        reason = f"{advice_} ({error.problem})"
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    # PyYAML 6.0.4 has a limit of its own, to which it reads ahead.
    message = _TOO_DEEP if "nesting depth" in reason else f"not valid YAML: {reason}"
    return Problem(name, line, column, "", message)


_ADVICE = (
    (
        "unexpected end of stream",
        "a quote is opened here and never closed; a text with ' needs double quotes",
    ),
    ("while scanning a block scalar", "a text that begins with | or > needs quotes"),
    ("mapping keys are not allowed", "a text that begins with ? needs quotes"),
    ("block sequence entries are not allowed", "a text that begins with - needs quotes"),
    ("while scanning an anchor", "a text that begins with & needs quotes"),
    ("while scanning an alias", "a text that begins with * needs quotes"),
    ("while parsing a block", "the line is indented otherwise than those that it belongs to"),
    ("while parsing a flow", "a { or [ is not closed, or a comma is missing"),
    ("could not find expected ':'", "the line has no 'KEY: VALUE'"),
    ("mapping values are not allowed", "the line before has no 'KEY: VALUE', or a text here has :"),
)
"""What to do, by words of PyYAML, which say what its parser expected."""


_BESIDE_TEXT = re.compile(
    r""":\s+[^\s'"|>].*(?:: |[{}\[\]'"*&]| #)|:\s+(?:\*|"[^"]*"|'[^']*')\s*\w"""
)
"""A value in whose text something stands that is YAML, or that goes on behind its quotes."""


def _is_half_quoted(text: str, error: yaml.MarkedYAMLError) -> bool:
    """Whether a line of the mistake has a text that YAML reads otherwise than it is meant."""
    marks = [mark.line for mark in (error.context_mark, error.problem_mark) if mark]
    if not re.search("did not find expected|not allowed in this context", error.problem or ""):
        return False
    lines = text.splitlines()[min(marks, default=0) : max(marks, default=0) + 1]
    return any(map(_BESIDE_TEXT.search, lines))


def _line(text: str, mark: YamlMark) -> str:
    lines = text.splitlines()
    return lines[mark.line] if mark.line < len(lines) else ""


def _character(text: str, mark: YamlMark) -> str:
    return _line(text, mark)[mark.column : mark.column + 1]


def _unprintable_problem(text: str, name: str) -> Problem:
    match = re.search(_UNPRINTABLE, text)
    at = match.start() if match else 0
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    what = f"U+{ord(text[at]):04X}" if match else "a character"
    message = f'{what} may not stand as it is; in double quotes write it as an escape, "\\x1b"'
    return Problem(name, line, column, "", f"not valid YAML: {message}")


@dataclass(slots=True)
class _Composer:
    next_event: Callable[[], Any]
    name: str
    notes: list[tuple[Node, YamlMark, str]] = field(default_factory=list)
    anchors: dict[str, tuple[Node, int, int]] = field(default_factory=dict)
    count: int = 0
    deepest: int = 0

    def document(self) -> YamlDocument:
        root = self.node(self.next_event(), 1)
        self.next_event()
        return YamlDocument(root, self.notes)

    def node(self, event: Any, depth: int) -> Node:
        """The tree that begins with an event. It is counted before it is made."""
        self.count += 1
        if self.count > MAX_NODES:
            self.stop(event, f"more than {MAX_NODES:,} values in one document")
        kind = event.__class__
        if kind is ScalarEvent:
            value: str = event.value
            scalar = Scalar(value, event.implicit[0], event.start_mark)
            if event.tag is None and event.anchor is None and value.isascii():
                return scalar
            return self.special(scalar, event)
        if kind is AliasEvent:
            return self.alias(event, depth)
        if depth > MAX_DEPTH:
            self.stop(event, _TOO_DEEP)
        if event.tag is not None or event.anchor is not None:
            return self.marked_collection(event, depth)
        return self.collection(event, depth)

    def collection(self, event: Any, depth: int) -> Mapping | Sequence:
        if event.__class__ is MappingStartEvent:
            return self.mapping(event, depth)
        return self.sequence(event, depth)

    def special(self, scalar: Scalar, event: Any) -> Scalar:
        """A scalar with a tag, an anchor or characters beyond ASCII."""
        scalar.value = join_pairs(scalar.value)
        if event.tag is not None:
            self.note_tag(scalar, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = (scalar, 1, 0)
        return scalar

    def marked_collection(self, event: Any, depth: int) -> Node:
        """A collection with an anchor or a tag; its size and depth are kept for its aliases."""
        before, above = self.count, self.deepest
        self.deepest = depth
        node = self.collection(event, depth)
        if event.tag is not None:
            self.note_tag(node, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, self.count - before + 1, self.deepest - depth + 1)
        self.deepest = max(above, self.deepest)
        return node

    def alias(self, event: Any, depth: int) -> Node:
        """The node that an alias repeats, itself and no copy: aliases take no memory."""
        known = self.anchors.get(event.anchor)
        if known is None:
            node = Scalar("", False, event.start_mark)
            message = f"alias *{event.anchor} has no anchor &{event.anchor} complete before it"
            self.notes.append((node, event.start_mark, message))
            return node
        target, size, height = known
        # An alias counts as what it repeats: a few lines of aliases can stand for billions.
        self.count += size - 1
        if self.count > MAX_NODES:
            self.stop(event, f"aliases repeat more than {MAX_NODES:,} values in one document")
        bottom = depth + height - 1
        if bottom > MAX_DEPTH:
            self.stop(event, f"{_TOO_DEEP}, through aliases")
        self.deepest = max(self.deepest, bottom)
        return target

    def sequence(self, event: Any, depth: int) -> Sequence:
        """A list."""
        if depth > self.deepest:
            self.deepest = depth
        items: list[Node] = []
        next_event = self.next_event
        inner = next_event()
        while inner.__class__ is not SequenceEndEvent:
            items.append(self.node(inner, depth + 1))
            inner = next_event()
        return Sequence(items, event.start_mark)

    def mapping(self, event: Any, depth: int) -> Mapping:
        """A mapping. Mistakes in its keys are noted, and their values are passed over."""
        if depth > self.deepest:
            self.deepest = depth
        entries: dict[str, Node] = {}
        keys: dict[str, YamlMark] = {}
        node = Mapping(entries, keys, event.start_mark)
        merged: list[Node] = []
        next_event = self.next_event
        inner = next_event()
        while inner.__class__ is not MappingEndEvent:
            key = self.node(inner, depth + 1)
            value = self.node(next_event(), depth + 1)
            inner = next_event()
            # YAML 1.2 (3.2.1.1) forbids equal keys; PyYAML takes the last one without a word.
            if not isinstance(key, Scalar) or (key.plain and not key.value) or key.value in entries:
                self.bad_key(node, key)
            elif key.value == "<<" and key.plain:
                merged.append(value)
            else:
                entries[key.value] = value
                keys[key.value] = key.mark
        if merged:
            self.merge(node, merged)
        return node

    def bad_key(self, node: Mapping, key: Node) -> None:
        message = "a key must be a name"
        if isinstance(key, Scalar) and key.value in node.entries:
            first = node.keys[key.value].line + 1
            message = f"key {key.value[:60]!r} is written twice; first on line {first}"
        self.notes.append((node, key.mark, message))

    def merge(self, node: Mapping, merged: list[Node]) -> None:
        """Adds the entries of `<<: *base`. Entries of the mapping itself win over merged ones, and
        earlier merges over later ones, as the merge key of YAML 1.1 defines."""
        entries: dict[str, Node] = {}
        keys: dict[str, YamlMark] = {}
        for value in merged:
            for base in value.items if isinstance(value, Sequence) else [value]:
                if not isinstance(base, Mapping):
                    self.notes.append((node, base.mark, "'<<' must merge a mapping"))
                    continue
                for key, entry in base.entries.items():
                    entries.setdefault(key, entry)
                    keys.setdefault(key, base.keys[key])
        node.entries, node.keys = entries | node.entries, keys | node.keys

    def note_tag(self, node: Node, event: Any) -> None:
        tag: str = event.tag
        if isinstance(node, Scalar) and tag in ("!", _STR):
            node.plain = False
            return
        short = tag.replace("tag:yaml.org,2002:", "!!")
        message = f"tag {short} is not allowed; scenarios are plain data"
        self.notes.append((node, event.start_mark, message))

    def stop(self, event: Any, message: str) -> NoReturn:
        mark = event.start_mark
        raise ScenarioError([Problem(self.name, mark.line + 1, mark.column + 1, "", message)])


KeyPath = tuple[str | int, ...]
"""Keys and indices from the root of a document to a value."""

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@record
class SourceLocation:
    """Where a value is written: line and column from 1, and its path as `format_path` gives it."""

    line: int
    column: int
    path: str


def format_path(path: KeyPath) -> str:
    """A path as messages show it: `turns[0].reply[1].text`."""
    out: list[str] = []
    for step in path:
        if isinstance(step, int):
            out.append(f"[{step}]")
        elif _BARE.match(step):
            out.append(f".{step}" if out else step)
        else:
            out.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(out)


def locate_path(root: Node, path: KeyPath) -> SourceLocation:
    """The location of the value at a path, as `reach` finds it; the path is whole where a key is
    absent."""
    node, written = reach(root, path)
    return SourceLocation(node.mark.line + 1, node.mark.column + 1, format_path(written))


def reach(root: Node, path: KeyPath) -> tuple[Node, KeyPath]:
    """The value at a path, and the path as it is written.

    Index 0 of a value that is written without its list is that value itself. Where a key is
    absent, the value is the last one that is there; the path is whole.
    """
    node = root
    written: list[str | int] = []
    for depth, step in enumerate(path):
        if step == 0 and isinstance(node, Mapping) and "0" not in node.entries:
            continue
        child = _child(node, step)
        if child is None:
            written.extend(path[depth:])
            break
        written.append(step)
        node = child
    return node, tuple(written)


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Mapping) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def count_nodes(node: Node) -> int:
    """The number of values of a tree; what aliases repeat counts again."""
    if isinstance(node, Scalar):
        return 1
    children = node.entries.values() if isinstance(node, Mapping) else node.items
    return 1 + sum(map(count_nodes, children))


def node_paths(root: Node) -> dict[int, KeyPath]:
    """The path to every node of a document, by the node's `id`.

    A node that aliases repeat has the path at which it is written first.
    """
    paths: dict[int, KeyPath] = {id(root): ()}
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            continue
        children: list[tuple[str | int, Node]]
        children = (
            list(node.entries.items()) if isinstance(node, Mapping) else list(enumerate(node.items))
        )
        path = paths[id(node)]
        for step, child in children:
            if id(child) not in paths:
                paths[id(child)] = (*path, step)
                waiting.append(child)
    return paths


def locate_node(paths: dict[int, KeyPath], node: Node, mark: YamlMark) -> SourceLocation:
    """The location of a mark inside a node."""
    path = format_path(paths.get(id(node), ()))
    return SourceLocation(mark.line + 1, mark.column + 1, path)
