"""LangChain's chat models: `stream()`, whose chunks are summed with `+`."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome
from tests.conformance.client import API_KEY, TIMEOUT
from tests.conformance.langchain_message import summed
from tests.conformance.request_body import schemas

__all__ = ["chat", "messages", "responses"]

_OPTIONS = {"api_key": API_KEY, "max_retries": 0, "timeout": TIMEOUT}


def chat(base_url: str, case: Case) -> Outcome:
    """`ChatOpenAI` with `stream_usage`, which it sets by itself for OpenAI's own URL only."""
    model = ChatOpenAI(model="gpt-4o", base_url=base_url, stream_usage=True, **_OPTIONS)
    return _run(model, case)


def responses(base_url: str, case: Case) -> Outcome:
    """`ChatOpenAI` over the Responses API."""
    model = ChatOpenAI(model="gpt-4o", base_url=base_url, use_responses_api=True, **_OPTIONS)
    return _run(model, case)


def messages(base_url: str, case: Case) -> Outcome:
    """`ChatAnthropic`."""
    model = ChatAnthropic(model="claude-sonnet-4-5", base_url=base_url, max_tokens=1024, **_OPTIONS)
    return _run(model, case)


def _run(model: Any, case: Case) -> Outcome:
    bound = model.bind_tools(schemas(case)) if case.tools else model
    return Outcome.of(**summed(bound.stream(case.prompt)))
