"""What the clients are asked, in the words of each API."""

from __future__ import annotations

from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.protocols.client_requests import ASKING, Json, first_body

__all__ = ["body", "schemas", "shown"]


def body(case: Case) -> Json:
    """The request's body as keyword arguments, but for what makes it a streamed one."""
    asked = first_body(ASKING[case.api], case.model, case.prompt, case.tools)
    asked.pop("stream", None)
    return asked


def schemas(case: Case) -> list[Json]:
    """The tools as functions with JSON schemas, in the form that OpenAI made common."""
    tools: list[Json] = ASKING["chat"].tools(case.tools)["tools"]
    return tools


def shown(value: Any) -> str:
    """A value where text belongs, as a user sees it who prints it; None is no text."""
    return "" if value is None else str(value)
