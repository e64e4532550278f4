"""`ChatGoogleGenerativeAI`: `stream()`, whose chunks are summed with `+`."""

from __future__ import annotations

from typing import Any

from langchain_google_genai import ChatGoogleGenerativeAI

from tests.conformance.langchain_message import summed
from tests.conformance.lines import serve


def contents(base_url: str, job: dict[str, Any]) -> dict[str, Any]:
    """The chat model over the Gemini API."""
    model = ChatGoogleGenerativeAI(
        model="gemini-2.5-flash",
        base_url=base_url,
        api_key="mock-key",
        max_retries=1,  # the number of attempts, not of retries
        timeout=60.0,
    )
    bound = model.bind_tools(job["tools"]) if job["tools"] else model
    return summed(bound.stream(job["prompt"]))


if __name__ == "__main__":
    serve("langchain-google-genai", {"contents": contents})
