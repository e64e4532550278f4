"""A request for a route that calls no model, and the conditions that it is judged by. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mockllm.core.text import display
from mockllm.matching.conditions import (
    JudgedCondition,
    judged_body,
    judged_headers,
    judged_model,
    judged_values,
)
from mockllm.matching.multipart import form_fields
from mockllm.protocols.routes import parse_query
from mockllm.scenario.model import Match


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


def judged_conditions(match: Match, request: RouteRequest, model: str) -> Iterator[JudgedCondition]:
    """Every condition of a route's `match`.

    Args:
        model: that the path names, for a request whose body names none.
    """
    yield from judged_model(match, request.model or model)
    yield from judged_headers(match, request.headers)
    yield from judged_values("match.query", "the parameter", match.query, request.parameters)
    if match.body is not None and request.fields is None:
        kind = display(request.content_type) if request.content_type else "no content type"
        problem = (
            f"match.body: the body must be JSON or a form, got {len(request.body)} bytes, {kind}"
        )
        yield JudgedCondition("match.body", match.body, None, (problem,))
    else:
        yield from judged_body("match.body", match.body, request.fields)
