"""How a client of each API goes on when the answer called no tool: it says something else."""

from __future__ import annotations

from collections.abc import Callable

from mockllm.protocols.client_requests import Json

__all__ = ["say"]


def say(api: str, body: Json, answer: str, said: str, user: str) -> Json:
    """The body of the next request.

    Args:
        body: of the request before.
        answer: the id of the answer to it.
        said: the text of that answer.
        user: what the user says now.
    """
    return _SAYING[api](body, answer, said, user)


def _messages(body: Json, answer: str, said: str, user: str) -> Json:
    told = [{"role": "assistant", "content": said}, {"role": "user", "content": user}]
    return {**body, "messages": [*body["messages"], *told]}


def _input(body: Json, answer: str, said: str, user: str) -> Json:
    return {**body, "previous_response_id": answer, "input": user}


def _contents(body: Json, answer: str, said: str, user: str) -> Json:
    told = [
        {"role": role, "parts": [{"text": text}]}
        for role, text in (("model", said), ("user", user))
    ]
    return {**body, "contents": [*body["contents"], *told]}


def _run(body: Json, answer: str, said: str, user: str) -> Json:
    count = len(body["messages"])
    told = [
        {"id": f"assistant_{count}", "role": "assistant", "content": said},
        {"id": f"user_{count}", "role": "user", "content": user},
    ]
    run = f"run_{int(body['runId'].removeprefix('run_')) + 1}"
    return {**body, "runId": run, "messages": [*body["messages"], *told]}


_SAYING: dict[str, Callable[[Json, str, str, str], Json]] = {
    "chat": _messages,
    "responses": _input,
    "anthropic": _messages,
    "gemini": _contents,
    "agui": _run,
}
