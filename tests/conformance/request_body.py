"""Request bodies and tool schemas for the clients of each API."""

from __future__ import annotations

from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.records import Json
from mockllm.replay.client_requests import first_body

__all__ = ["as_text", "body", "schemas"]


def body(case: Case) -> Json:
    """The request body as keyword arguments, without `stream`."""
    request = first_body(PROTOCOLS[case.api], case.model, case.prompt, case.tools)
    request.pop("stream", None)
    return request


def schemas(case: Case) -> list[Json]:
    """The tools as functions with JSON schemas, in the form of Chat Completions."""
    offered = [tool.offered() for tool in case.tools]
    tools: list[Json] = PROTOCOLS["chat"].client.tools(offered)["tools"]
    return tools


def as_text(value: Any) -> str:
    """A value of a text field as a user would print it; None is empty text."""
    return "" if value is None else str(value)
