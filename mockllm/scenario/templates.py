"""Values of the request in texts: `{{ request.user }}`, `{{ call.arguments.city | default("?") }}`.

Only turns with `template: true` have them. An expression is a path from one of `ROOTS`, or a text
in quotes, with filters behind it. It calls nothing and reads no attribute of an object: a step of a
path is a key of a JSON object or an index of a list. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.record import record
from mockllm.core.text import did_you_mean, display

ROOTS: Mapping[str, tuple[str, ...]] = {
    "request": ("user", "system", "model", "body", "path", "query"),
    "call": ("name", "id", "arguments"),
    "calls": (),
    "result": ("text", "json", "name", "id"),
    "results": (),
    "turn": (),
    "match": (),
}
"""What a path may begin with, and the keys that may follow; () is for any."""

MAX_LENGTH = 1024 * 1024
"""Of a text with its values, in characters."""

_MAX_EXPRESSIONS = 1_000
_MAX_STEPS = 50


class TemplateError(Exception):
    """An expression is malformed, or has no value; the message is a sentence without an end."""


@record
class Expression:
    """One `{{ ... }}`.

    Args:
        written: as it stands in the text, without the braces.
        path: keys and indices; () where it is a `literal`.
        filters: name and argument of each.
    """

    written: str
    path: tuple[str | int, ...]
    literal: str
    filters: tuple[tuple[str, Any], ...]


_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_][\w-]*)|(?P<number>-?\d+(?:\.\d+)?)|(?P<mark>[.\[\]|()])
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[str | Expression, ...]:
    """The pieces of a text: what is sent as it stands, and expressions.

    Raises:
        TemplateError: an expression is malformed.
    """
    pieces: list[str | Expression] = []
    at = 0
    for match in _HOLE.finditer(text):
        pieces += [text[at : match.start()], _Parser(match[1]).expression()]
        at = match.end()
    pieces.append(text[at:])
    if "{{" in text[at:]:
        raise TemplateError("a '{{' has no '}}' after it; write {{ \"{{\" }} for the braces")
    if len(pieces) > 2 * _MAX_EXPRESSIONS:
        raise TemplateError(f"has more than {_MAX_EXPRESSIONS:,} expressions")
    return tuple(piece for piece in pieces if piece != "")


class _Parser:
    def __init__(self, written: str) -> None:
        self._written = written.strip()
        self._tokens = list(self._read(self._written))

    def _read(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.end() == at:
                raise self._error(f"cannot be read from {text[at:].lstrip()[:20]!r} on")
            yield match.lastgroup or "", match[match.lastgroup or 0]
            at = match.end()

    def _error(self, why: str) -> TemplateError:
        return TemplateError(f"{{{{ {self._written} }}}} {why}")

    def _take(self, *kinds: str) -> str | None:
        """The next token, if it is of these kinds, or one of these marks."""
        if self._tokens and (self._tokens[0][0] in kinds or self._tokens[0][1] in kinds):
            return self._tokens.pop(0)[1]
        return None

    def _need(self, what: str, *kinds: str) -> str:
        token = self._take(*kinds)
        if token is None:
            raise self._error(f"needs {what}")
        return token

    def expression(self) -> Expression:
        text = self._take("text")
        path = self._path() if text is None else ()
        filters = []
        while self._take("|"):
            filters.append(self._filter())
        if self._tokens:
            raise self._error(f"has {self._tokens[0][1]!r} where it should end, or '|' follow")
        literal = "" if text is None else _unquote(text)
        return Expression(self._written, path, literal, tuple(filters))

    def _path(self) -> tuple[str | int, ...]:
        names = ", ".join(ROOTS)
        root = self._need(f"a path, which begins with one of {names}", "name")
        if root not in ROOTS:
            hint = did_you_mean(root, ROOTS, f"a path begins with one of {names}")
            raise self._error(f"begins with {root!r}; {hint}")
        path: list[str | int] = [root]
        while (mark := self._take(".", "[")) is not None:
            if mark == ".":
                path.append(self._need("a name after '.'", "name"))
                continue
            step = self._need("an index or a key in quotes after '['", "number", "text")
            path.append(_unquote(step) if step[0] in "\"'" else self._index(step))
            self._need("']'", "]")
        known = ROOTS[root]
        if len(path) > 1 and known and path[1] not in known:
            hint = did_you_mean(str(path[1]), known, f"it has {', '.join(known)}")
            raise self._error(f"asks {root!r} for {path[1]!r}; {hint}")
        if len(path) > _MAX_STEPS:
            raise self._error(f"has more than {_MAX_STEPS} steps")
        return tuple(path)

    def _index(self, number: str) -> int:
        if "." in number:
            raise self._error("has an index that is no whole number")
        return int(number)

    def _filter(self) -> tuple[str, Any]:
        name = self._need(f"a filter after '|', one of {', '.join(_FILTERS)}", "name")
        if name not in _FILTERS:
            hint = did_you_mean(name, _FILTERS, f"there are {', '.join(_FILTERS)}")
            raise self._error(f"has no filter {name!r}; {hint}")
        argument: Any = None
        if name == "default":
            self._need("a value in brackets after 'default'", "(")
            argument = self._literal()
            self._need("')'", ")")
        return name, argument

    def _literal(self) -> Any:
        token = self._need('a value such as "none" or 0', "text", "number", "name")
        if token[0] in "\"'":
            return _unquote(token)
        if token in _WORDS:
            return _WORDS[token]
        try:
            return json.loads(token)
        except ValueError:
            raise self._error(f"needs quotes around {token!r}") from None


def _unquote(token: str) -> str:
    """The text of a token in quotes, in which a backslash makes the next character stand for
    itself, and `\\n` for a line break."""
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], token[1:-1])


class _Missing:
    """There is no value, and why."""

    def __init__(self, why: str) -> None:
        self.why = why


Values = Mapping[str, Callable[[], Any]]
"""What the roots stand for; each is called when an expression needs it. None: there is none."""


def render(text: str, values: Values) -> Any:
    """A text with its values in place of its expressions. A text that is one expression and
    nothing else is its value, with the type that it has.

    Raises:
        TemplateError: an expression has no value and no default, or the text becomes too long.
    """
    pieces = parse(text)
    if len(pieces) == 1 and isinstance(pieces[0], Expression):
        return _check_length(_evaluate(pieces[0], values))
    shown = [piece if isinstance(piece, str) else _evaluate(piece, values) for piece in pieces]
    return _check_length("".join(map(as_text, shown)))


def as_text(value: Any) -> str:
    """A value as it stands in a text: JSON, but a text as it is."""
    return value if isinstance(value, str) else compact(value)


def render_json(value: Any, values: Values) -> Any:
    """A JSON value with the texts in it rendered; its keys stay."""
    if isinstance(value, str):
        return render(value, values) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: render_json(inner, values) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [render_json(inner, values) for inner in value]
    return value


def _check_length(value: Any) -> Any:
    if len(as_text(value)) > MAX_LENGTH:
        raise TemplateError(f"is longer than {MAX_LENGTH:,} characters with its values")
    return value


def _evaluate(expression: Expression, values: Values) -> Any:
    value: Any = _look_up(expression, values) if expression.path else expression.literal
    for name, argument in expression.filters:
        value = _FILTERS[name](value, argument)
    if isinstance(value, _Missing):
        raise TemplateError(
            f"{{{{ {expression.written} }}}}: {value.why}; write | default(...) behind it if that "
            "may be"
        )
    return value


def _look_up(expression: Expression, values: Values) -> Any:
    root, *steps = expression.path
    value = values[str(root)]() if root in values else None
    if value is None:
        return _Missing(f"this request has no {root!r}")
    shown = str(root)
    for step in steps:
        inner = _step(value, step)
        if isinstance(inner, _Missing):
            return _Missing(f"{shown} {inner.why}")
        value, shown = inner, f"{shown}.{step}"
    return value


def _step(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        if isinstance(value, Sequence) and not isinstance(value, str):
            inside = -len(value) <= step < len(value)
            return value[step] if inside else _Missing(f"has {len(value)} items, and no [{step}]")
        return _Missing(f"is no list, but {display(value)}")
    if isinstance(value, Mapping):
        return value[step] if step in value else _Missing(f"has no {step!r}")
    return _Missing(f"is no object, but {display(value)}")


def _length(value: Any, _: Any) -> Any:
    if isinstance(value, (str, Mapping, list, tuple)):
        return len(value)
    return value if isinstance(value, _Missing) else _Missing(f"{display(value)} has no length")


_FILTERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "default": lambda value, other: other if value is None or _is_missing(value) else value,
    "json": lambda value, _: value if _is_missing(value) else compact(value),
    "length": _length,
}


def _is_missing(value: Any) -> bool:
    return isinstance(value, _Missing)
