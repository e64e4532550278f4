"""`ChatGoogleGenerativeAI`: `stream()`, whose chunks are summed with `+`."""

from __future__ import annotations

from typing import Any

from langchain_google_genai import ChatGoogleGenerativeAI

from tests.conformance.langchain_message import said
from tests.conformance.lines import serve


def contents(base_url: str, question: dict[str, Any]) -> dict[str, Any]:
    """The chat model over the Gemini API."""
    model = ChatGoogleGenerativeAI(
        model="gemini-2.5-flash",
        base_url=base_url,
        api_key="mock-key",
        max_retries=1,  # how often it is tried, not how often again
        timeout=5.0,
    )
    asked = model.bind_tools(question["tools"]) if question["tools"] else model
    return said(asked.stream(question["prompt"]))


if __name__ == "__main__":
    serve("langchain-google-genai", {"contents": contents})
