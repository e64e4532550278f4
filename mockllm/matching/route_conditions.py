"""A request for a route that calls no model, and the conditions that it is judged by. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mockllm.core.text import display
from mockllm.matching.conditions import check_partial, check_text, model_holds
from mockllm.matching.multipart import form_fields
from mockllm.protocols.routes import parse_query
from mockllm.scenario.model import Match, TextCondition

__all__ = ["RouteCondition", "RouteRequest", "judged_conditions"]


@dataclass(frozen=True)
class RouteRequest:
    """A request as it came.

    Args:
        path: as sent, without the query.
        query: as sent, without the `?`.
        headers: names in lower case.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the query, the last value of each name."""
        return parse_query(self.query)

    @cached_property
    def fields(self) -> Any:
        """The body as a JSON value, of a form its fields; None for any other body."""
        try:  # first, since curl declares JSON as a form
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return form_fields(self.content_type, self.body)

    @cached_property
    def model(self) -> str:
        """The model that the body names; "" for none."""
        model = self.fields.get("model") if isinstance(self.fields, dict) else None
        return model if isinstance(model, str) else ""


@dataclass(frozen=True, slots=True)
class RouteCondition:
    """A condition of a `match`, and why a request does not meet it; None where it does.

    Args:
        path: below `match`, as in the file.
    """

    path: str
    expected: Any
    actual: Any
    problem: str | None


def judged_conditions(match: Match, request: RouteRequest, model: str) -> Iterator[RouteCondition]:
    """Every condition of a route's `match`.

    Args:
        model: that the path names, for a request whose body names none.
    """
    sent = request.model or model
    if match.model is not None:
        message = f"match.model: the model must match {match.model!r}, got {sent!r}"
        problem = None if model_holds(match.model, sent) else message
        yield RouteCondition("model", match.model, sent, problem)
    for kind, conditions, values in (
        ("headers: the header", match.headers, request.headers),
        ("query: the parameter", match.query, request.parameters),
    ):
        for name, condition in conditions:
            value = values.get(name)
            path = f"{kind.partition(':')[0]}.{name}"
            problem = _text_problem(f"match.{kind} {name!r}", condition, value)
            yield RouteCondition(path, condition.value, value, problem)
    if match.body is None:
        return
    if request.fields is None:
        kind = display(request.content_type) if request.content_type else "no content type"
        problem = (
            f"match.body: the body must be JSON or a form, got {len(request.body)} bytes, {kind}"
        )
    else:
        problem = check_partial("match.body: body", match.body, request.fields)
    yield RouteCondition("body", match.body, request.fields, problem)


def _text_problem(what: str, condition: TextCondition, value: str | None) -> str | None:
    if value is None:
        return f"{what} must be sent, but is not there"
    return check_text(what, condition, value)
