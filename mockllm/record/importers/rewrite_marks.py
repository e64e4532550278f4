"""Rewrites the marks of pytest-recording and pytest-vcr in Python files. Pure: text to text.

Only the marks change; every other byte of a file stays. What has no counterpart stays, too, and is
listed with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

RECORDED = "mockllm_recorded"
UNMATCHED = "mockllm(unmatched=True)"
"""Of tests that pass although nothing answers a request."""

NO_MARKS: Mapping[str, Sequence[str]] = MappingProxyType({})

_MODES = {"once": "once", "new_episodes": "new_episodes", "all": "all", "rewrite": "all"}
_DEFAULT_MODE = "none"

_NEEDLESS = {
    "filter_headers": "no header of a request is written but a few harmless ones",
    "filter_query_parameters": "secrets in URLs are never written",
    "decode_compressed_response": "compressed answers are read as they are",
    "serializer": "recordings are YAML",
    "allow_playback_repeats": "an answer that a test gets twice is recorded twice",
}
_ARGUMENTS = {
    "match_on": "write mockllm_recorded(match=[...])",
    "filter_post_data_parameters": "add the fields to [redact] in mockllm.toml",
    "before_record_request": "add a pattern to [redact] in mockllm.toml",
    "before_record_response": "add a pattern to [redact] in mockllm.toml",
}
_VCR_CONFIG = (
    "vcr_config: its settings do not reach mockllm: filters go into [redact] in mockllm.toml, "
    "record_mode into mockllm_record of the ini file"
)
_OTHER_MARKS = {
    "default_cassette": "a recording is found by the name of its test; remove the mark",
    "block_network": "mockllm blocks no connections, and is not blocked; keep pytest-recording for "
    "it, or remove the mark",
    "allowed_hosts": "mockllm blocks no connections, and is not blocked; keep pytest-recording for "
    "it, or remove the mark",
}


@dataclass(frozen=True, slots=True)
class Note:
    """Something on a line that was not converted, or not whole, and what to do.

    Args:
        stays: whether a mark stays as it is, so that its tests still need VCR.
    """

    line: int
    text: str
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """The new text of a file, and notes in the order of their lines."""

    source: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class _Edit:
    """A replacement of the bytes from `start` to `end`."""

    start: int
    end: int
    text: bytes


def convert(source: str, marks: Mapping[str, Sequence[str]] = NO_MARKS) -> Conversion:
    """A Python file with the marks of mockllm instead of `pytest.mark.vcr`.

    Args:
        marks: those that tests get, such as `RECORDED`, by their names with their classes
            (`TestIt.test_it`).

    Raises:
        SyntaxError: it is not Python.
    """
    file = _File(source)
    for node in ast.walk(file.tree):
        file.look_at(node)
    file.mark(marks)
    return Conversion(file.apply_edits(), tuple(sorted(file.notes, key=lambda note: note.line)))


class _File:
    """A file, the edits to it, and the notes about it."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.notes: list[Note] = []
        self._data = source.encode()
        self._edits: list[_Edit] = []
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._calls: set[ast.expr] = set()
        """Marks that are called: their call is edited."""

    def look_at(self, node: ast.AST) -> None:
        """Adds the edits and notes for one node; calls come before what is called."""
        match node:
            case ast.Call(func=func) if _mark(func) == "vcr":
                self._calls.add(func)
                self._edit_call(node)
            case ast.Attribute() if _mark(node) == "vcr" and node not in self._calls:
                self._edit(node, b"mockllm_recorded")
            case ast.Attribute() if _mark(node) in _OTHER_MARKS:
                self._note(node, f"pytest.mark.{node.attr}: {_OTHER_MARKS[node.attr]}")
            case ast.Attribute(attr="use_cassette"):
                text = "it does nothing in a recorded test; remove it together with vcrpy"
                self._note(node, f"use_cassette: {text}")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._look_at_function(node)

    def _look_at_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name == "vcr_config":
            self._note(node, _VCR_CONFIG)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        for argument in arguments:
            if argument.arg == "vcr":
                text = "it has the requests of a recorded test; use the journal of mockllm_session"
                self._note(argument, f"the fixture vcr: {text}")

    def _edit_call(self, call: ast.Call) -> None:
        """Converts a mark with arguments: the mode stays, the others are listed."""
        name = call.func
        assert isinstance(name, ast.Attribute)
        start = self._name(name)
        end = self._offset(call.end_lineno, call.end_col_offset)
        if b"#" in self._data[start:end]:
            self._stays(call, "a comment in it")
            return
        modes = [keyword for keyword in call.keywords if keyword.arg == "record_mode"]
        mode = _constant(modes[0].value) if modes else _DEFAULT_MODE
        if mode not in (*_MODES, _DEFAULT_MODE):
            self._stays(call, "a record_mode that only the run knows")
            return
        argument = f'(mode="{_MODES[mode]}")' if mode in _MODES else ""
        self._edits.append(_Edit(start, end, f"mockllm_recorded{argument}".encode()))
        self.notes += [Note(call.lineno, text) for text in _left_out(call)]

    def _edit(self, name: ast.Attribute, text: bytes) -> None:
        end = self._offset(name.end_lineno, name.end_col_offset)
        self._edits.append(_Edit(self._name(name), end, text))

    def _name(self, node: ast.Attribute) -> int:
        return self._offset(node.end_lineno, node.end_col_offset) - len(node.attr.encode())

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._starts[line - 1] + column

    def _note(self, node: ast.expr | ast.stmt | ast.arg, text: str) -> None:
        self.notes.append(Note(node.lineno, text))

    def _stays(self, call: ast.Call, what: str) -> None:
        text = f"pytest.mark.vcr with {what}: convert it by hand"
        self.notes.append(Note(call.lineno, text, stays=True))

    def mark(self, marks: Mapping[str, Sequence[str]]) -> None:
        """Marks functions, and imports pytest for it."""
        found = {name: node for name, node in _functions(self.tree) if name in marks}
        for name, node in found.items():
            line = min((each.lineno for each in node.decorator_list), default=node.lineno)
            start = self._starts[line - 1]
            indent = b" " * node.col_offset
            lines = (b"%b@pytest.mark.%b\n" % (indent, mark.encode()) for mark in marks[name])
            self._edits.append(_Edit(start, start, b"".join(lines)))
        if found and not _imports_pytest(self.tree):
            body = self.tree.body
            head = [node for node in body if _stands_first(node)]
            start = self._starts[head[-1].end_lineno or 0] if head else 0
            self._edits.append(_Edit(start, start, b"import pytest\n"))

    def apply_edits(self) -> str:
        """The text with all edits."""
        data = self._data
        for edit in sorted(self._edits, key=lambda edit: edit.start, reverse=True):
            data = data[: edit.start] + edit.text + data[edit.end :]
        return data.decode()


def _mark(node: ast.expr) -> str:
    """The name of a mark, of `pytest.mark.NAME` or `mark.NAME`; "" if the node is none."""
    match node:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(), attr="mark"), attr=name):
            return name
        case ast.Attribute(value=ast.Name(id="mark"), attr=name):
            return name
    return ""


def _functions(
    node: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a module and of its classes, by name."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix}{child.name}", child
            case ast.ClassDef():
                yield from _functions(child, f"{prefix}{child.name}.")
            case ast.stmt():
                yield from _functions(child, prefix)


def _imports_pytest(tree: ast.Module) -> bool:
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    return any(name.name == "pytest" and not name.asname for node in imports for name in node.names)


def _stands_first(node: ast.stmt) -> bool:
    """Whether nothing but a docstring and future imports may stand before a statement."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.ImportFrom(module="__future__"):
            return True
    return False


def _left_out(call: ast.Call) -> Iterator[str]:
    """The loss of a mark, where that changes anything."""
    for keyword in call.keywords:
        name = keyword.arg
        if name is None:
            yield "pytest.mark.vcr(**...): its settings are left out"
        elif name != "record_mode" and name not in _NEEDLESS:
            what = _ARGUMENTS.get(name, "mockllm has no such setting")
            yield f"pytest.mark.vcr({name}=...) is left out: {what}"


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
