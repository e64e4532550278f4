"""Requests of the legacy Completions: the body to the neutral request, with the service's
validation.

https://platform.openai.com/docs/api-reference/completions/create
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Request, system_text
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.openai_common import (
    BOOLEAN,
    CHECKS,
    OBJECT,
    TEXT,
    empty_array,
    invalid_type,
    missing,
)
from mockllm.wire.protocols.openai_completions import API
from mockllm.wire.protocols.openai_completions.prompts import (
    is_tokens,
    read_conversation,
    read_prompts,
)
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import encodable, mapping

_MOST_CHOICES = 128  # `n` of the reference
_MOST_LOGPROBS = 5  # `logprobs` of the reference
_MOST_ECHOED = 4_000_000
"""The characters of all echoed prompts of an answer: 128 choices would repeat a long one often."""


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        stream_usage: `stream_options.include_usage`.
        heads: with what the text of each choice begins: its prompt with `echo`, "" without. There
            are `n` choices for each prompt, one prompt after the other.
        logprobs: how many tokens of each position have a log probability; None: there are none.
    """

    stream_usage: bool = False
    heads: tuple[str, ...] = ("",)
    logprobs: int | None = None


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    body = request.body
    prompts = read_prompts(body.get("prompt")) or ("",)
    n, logprobs = _whole(body.get("n"), 1, _MOST_CHOICES), body.get("logprobs")
    echo = body.get("echo") is True
    heads = tuple(encodable(prompt) if echo else "" for prompt in prompts for _ in range(n))
    return Options(
        stream_usage=mapping(body.get("stream_options")).get("include_usage") is True,
        heads=heads,
        # Servers such as Rapid-MLX take the `true` of Chat Completions, too.
        logprobs=None if logprobs in (None, False) else _whole(logprobs, 0, _MOST_LOGPROBS),
    )


def _whole(value: object, least: int, most: int) -> int:
    """The whole number, between two bounds; the least for any other value."""
    return min(max(value, least), most) if isinstance(value, int) else least


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body of Completions.

    Args:
        target: `deployment` of Azure's path stands in for a missing `model`.
    """
    if not isinstance(body, dict):
        raise invalid_type("body", "an object", body)
    model = body.get("model") or target.segments.get("deployment")
    if strict:
        _check(body, model)
    prompts = read_prompts(body.get("prompt"))
    _check_size(body, prompts)
    messages = read_conversation(prompts)
    return Request(
        api=API,
        model=model if isinstance(model, str) else "",
        body=body,
        stream=body.get("stream") is True,
        messages=messages,
        system=system_text(messages),
    )


# Checks


def _check(body: dict[str, Any], model: object) -> None:
    for key, value in body.items():
        check = _CHECKS.get(key)
        if check is not None and value is not None:
            check(key, value)
    if not model or not isinstance(model, str):
        raise invalid_type("model", "a string", model) if model else missing("model")
    if body.get("prompt") is None:
        raise missing("prompt")
    n, best_of = body.get("n") or 1, body.get("best_of")
    if best_of is not None and best_of < n:
        raise RequestError("best_of must be greater than or equal to n.", param="best_of")


def _check_size(body: dict[str, Any], prompts: tuple[str, ...]) -> None:
    """Raises for more choices than the service makes, and for more echoed text than fits into an
    answer; also where requests are not validated."""
    n = _whole(body.get("n"), 1, _MOST_CHOICES)
    if n * len(prompts) > _MOST_CHOICES:
        raise RequestError(
            f"Invalid 'prompt': the prompts have more than {_MOST_CHOICES} choices together.",
            param="prompt",
        )
    if body.get("echo") is True and n * sum(map(len, prompts)) > _MOST_ECHOED:
        raise RequestError(
            f"Invalid 'echo': the choices would repeat more than {_MOST_ECHOED:,} characters.",
            param="echo",
        )


def _check_prompt(where: str, value: object) -> None:
    if isinstance(value, str) or is_tokens(value):
        return
    if not isinstance(value, list):
        raise invalid_type(where, "a string or an array of strings or tokens", value)
    if not value:
        raise empty_array(where)
    for i, item in enumerate(value):
        if not isinstance(item, str) and not is_tokens(item):
            raise invalid_type(f"{where}[{i}]", "a string or an array of tokens", item)


_CHECKS: dict[str, Check] = {
    "prompt": _check_prompt,
    "stream": BOOLEAN,
    "stream_options": OBJECT,
    "echo": BOOLEAN,
    "suffix": TEXT,
    "n": CHECKS.number(1, _MOST_CHOICES, whole=True),
    "best_of": CHECKS.number(1, 20, whole=True),
    "logprobs": CHECKS.number(0, _MOST_LOGPROBS, whole=True),
    "max_tokens": CHECKS.number(0, whole=True),
    "temperature": CHECKS.number(0, 2),
    "top_p": CHECKS.number(0, 1),
    "presence_penalty": CHECKS.number(-2, 2),
    "frequency_penalty": CHECKS.number(-2, 2),
    "seed": CHECKS.number(-(2**63), 2**63 - 1, whole=True),
    "stop": CHECKS.of_kind((str, list), "a string or an array of strings"),
    "logit_bias": OBJECT,
    "user": TEXT,
}
