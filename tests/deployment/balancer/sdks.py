"""One question with each official SDK, whose answers show which replica they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import anthropic
import httpx
import openai
from google import genai
from google.genai import types

from tests.timeouts import GIVE_UP

MODEL = "m"
BROKEN = (openai.APIConnectionError, httpx.RemoteProtocolError, httpx.ReadError)
"""What the client of OpenAI raises when a connection ends."""


class Answers(httpx.Client):
    """An HTTP client for SDKs that keeps the answers."""

    def __init__(self) -> None:
        self.answers: list[httpx.Response] = []
        self.options: dict[str, Any] = {
            "timeout": GIVE_UP,
            "trust_env": False,
            "verify": False,  # there is no TLS here; reading the certificates takes longer than all
            "event_hooks": {"response": [self.answers.append]},
        }
        super().__init__(**self.options)

    @cache  # noqa: B019 - a client of Google takes long to make; all of them end with the test
    def gemini(self, root: str) -> genai.Client:
        """The client of Google for a session at `root`."""
        options = types.HttpOptions(base_url=root, httpx_client=self)
        return genai.Client(api_key="test", http_options=options)


@contextmanager
def openai_client(root: str, http: httpx.Client, retries: int = 0) -> Iterator[openai.OpenAI]:
    """The client of OpenAI for a session at `root`."""
    yield openai.OpenAI(
        api_key="sk-test", base_url=f"{root}/v1", http_client=http, max_retries=retries
    )


def _chat(root: str, http: Answers, question: str) -> str:
    with openai_client(root, http) as client:
        chunks = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": question}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def _responses(root: str, http: Answers, question: str) -> str:
    with openai_client(root, http) as client:
        return client.responses.create(model=MODEL, input=question).output_text


def _anthropic(root: str, http: Answers, question: str) -> str:
    own = anthropic.DefaultHttpxClient(**http.options)  # it takes none of httpx itself
    with (
        anthropic.Anthropic(api_key="sk", base_url=root, http_client=own, max_retries=0) as client,
        client.messages.stream(
            model=MODEL, max_tokens=100, messages=[{"role": "user", "content": question}]
        ) as stream,
    ):
        return stream.get_final_text()


def _gemini(root: str, http: Answers, question: str) -> str:
    answer = http.gemini(root).models.generate_content(model=MODEL, contents=question)
    return answer.text or ""


ASK: dict[str, Callable[[str, Answers, str], str]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def ask(api: str, root: str, http: Answers, question: str = "hi") -> str | int:
    """The text of the answer, or the status of the error that the SDK raises; no retries.

    Args:
        root: the address of the server, with the session in it.
    """
    try:
        return ASK[api](root, http, question)
    except (openai.APIStatusError, anthropic.APIStatusError) as error:
        return error.status_code
    except genai.errors.APIError as error:
        return int(error.code)
