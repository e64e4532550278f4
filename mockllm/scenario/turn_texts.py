"""The texts of a turn in which values of the request may stand: changed, checked, found. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.jsontext import parse as read_json
from mockllm.scenario.model import Http, TurnSpec
from mockllm.scenario.part_model import AnyPart, PartPath, ValueForm, map_members, map_texts
from mockllm.scenario.route_model import RouteAnswer
from mockllm.scenario.templates import ROOTS, TemplateError, as_text, parse

Change = Callable[[PartPath, Any], Any]
"""What becomes of a text, or of a JSON value with texts in it, at a path of the turn."""


def _has_template(text: str) -> bool:
    return "{{" in text


def with_texts(
    turn: TurnSpec, change: Change, applies: Callable[[str], bool] = _has_template
) -> TurnSpec:
    """A turn with a change of all texts in which values of the request may stand, those of earlier
    tries, too. Alternatives are not changed.

    Args:
        applies: whether a text may have a value.
    """
    return _Texts(change, applies).turn(turn)


class _Texts:
    def __init__(self, change: Change, applies: Callable[[str], bool]) -> None:
        self._change, self._applies = change, applies
        self._by_form = {"text": self._text, "json": self._json, "value": change}

    def turn(self, turn: TurnSpec) -> TurnSpec:
        tries = [
            replace(attempt, reply=self._reply(("attempts", number, "reply"), attempt))
            for number, attempt in enumerate(turn.attempts)
        ]
        choices = [
            replace(choice, reply=self._reply(("choices", number, "reply"), choice))
            for number, choice in enumerate(turn.choices)
        ]
        return replace(
            turn,
            reply=self._reply(("reply",), turn),
            attempts=tuple(tries),
            choices=tuple(choices),
            http=None if turn.http is None else self._http(turn.http),
            answer=None if turn.answer is None else self._answer(turn.answer),
            headers=self._headers(("headers",), turn.headers),
        )

    def _reply(self, path: PartPath, turn: TurnSpec) -> tuple[AnyPart, ...]:
        return tuple([self._part((*path, n), part) for n, part in enumerate(turn.reply)])

    def _text(self, path: PartPath, text: str) -> str:
        return as_text(self._change(path, text)) if self._applies(text) else text

    def _json(self, path: PartPath, text: str | None) -> str | None:
        """JSON text; its values are changed one by one, so that quotes in them stay right."""
        if text is None or not self._applies(text):
            return text
        try:
            value = read_json(text)
        except ValueError:
            return self._text(path, text)
        return compact(self._change(path, value))

    def _part(self, path: PartPath, part: AnyPart) -> AnyPart:
        def change_member(inner: PartPath, member: AnyPart) -> AnyPart:
            def change_text(key: PartPath, value: Any, form: ValueForm) -> Any:
                return self._by_form[form]((*path, *inner, *key), value)

            return map_texts(member, change_text)

        return map_members(part, change_member)

    def _http(self, http: Http) -> Http:
        headers, error = self._headers(("http", "headers"), http.headers), http.error
        if error is not None and error.message is not None:
            error = replace(error, message=self._text(("http", "error"), error.message))
        return replace(http, headers=headers, error=error)

    def _headers(
        self, path: PartPath, headers: tuple[tuple[str, str], ...]
    ) -> tuple[tuple[str, str], ...]:
        return tuple((name, self._text((*path, name), value)) for name, value in headers)

    def _answer(self, answer: RouteAnswer) -> RouteAnswer:
        headers, value = self._headers(("answer", "headers"), answer.headers), answer.value
        if answer.kind == "text":
            value = self._text(("answer", "text"), value)
        elif answer.kind == "json":
            value = self._change(("answer", "json"), value)
        return replace(answer, headers=headers, value=value)


def template_flaws(turn: TurnSpec, groups: Sequence[str]) -> Iterator[tuple[PartPath, str]]:
    """The paths of texts in which an expression is malformed, with why.

    Args:
        groups: the names that may follow `match`.
    """
    flaws: list[tuple[PartPath, str]] = []

    def check(path: PartPath, value: Any) -> Any:
        for inner, text in _texts(path, value):
            try:
                pieces = parse(text)
            except TemplateError as flaw:
                flaws.append((inner, str(flaw)))
                continue
            for piece in pieces:
                if isinstance(piece, str) or piece.path[:1] != ("match",):
                    continue
                if piece.path[1:2] == () or piece.path[1] not in groups:
                    known = ", ".join(groups) or "none"
                    why = "needs the name of a group (?P<name>...) of a condition; there are:"
                    flaws.append((inner, f"{{{{ {piece.written.strip()} }}}} {why} {known}"))
        return value

    with_texts(turn, check)
    yield from flaws


def look_like_templates(
    turn: TurnSpec, names: Sequence[str] = ()
) -> Iterator[tuple[PartPath, str]]:
    """The paths of texts that look as if values of the request were to be put into them, each with
    what looks so: `{{ request.user }}`, a reference to a group of a regular expression, or one of
    `names`."""
    similar: list[tuple[PartPath, str]] = []

    def look(path: PartPath, value: Any) -> Any:
        for inner, text in _texts(path, value):
            match = _LOOKS_SO.search(text)
            like = match[0] if match else next((name for name in names if name in text), None)
            if like is not None:
                similar.append((inner, like))
        return value

    _Texts(look, lambda text: "{" in text or "\\g<" in text).turn(turn)
    yield from similar


def _texts(path: PartPath, value: Any) -> Iterator[tuple[PartPath, str]]:
    """The texts in a JSON value, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts((*path, key), inner)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _texts((*path, index), inner)


_LOOKS_SO = re.compile(rf"\{{\{{\s*(?:{'|'.join(ROOTS)})\b[^{{}}]*\}}\}}|\\g<\w+>")
