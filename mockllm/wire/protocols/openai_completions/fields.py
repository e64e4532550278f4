"""The fields that streams and bodies of Completions share.

https://platform.openai.com/docs/api-reference/completions/object
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockllm.core import events as ev
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import Reply, logprob
from mockllm.wire.protocols.openai_common import cache_write, is_foreign_finish
from mockllm.wire.protocols.records import Json

_FINISHES: dict[str, ev.FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
}
_WORDS = re.compile(r"\s*\S+|\s+")


def read_finish(value: str) -> ev.Finish:
    """The finish of a `finish_reason`; unknown values count as `stop`, and are kept in `raw`."""
    reason = _FINISHES.get(value)
    return ev.Finish(reason or "stop", None if reason else value)


def write_finish(reason: ev.FinishReason, raw: str | None) -> str:
    """The `finish_reason` of a finish. The API has none for calls and refusals."""
    if raw and not is_foreign_finish(raw):
        return raw
    return reason if reason in _FINISHES else "stop"


def answer_id(reply: Reply) -> str:
    """The `cmpl-` id that all chunks and the body of an answer have."""
    return "cmpl-" + derive(reply.seed, "cmpl", length=29)


def fingerprint(reply: Reply) -> Json:
    """The fingerprint of the scenario; the models of this API send none by themselves."""
    return {"system_fingerprint": reply.fingerprint} if reply.fingerprint else {}


def write_usage(usage: ev.Usage) -> Json:
    """The `usage` object, with the details that are not zero."""
    written: Json = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cached or usage.cache_written:
        written["prompt_tokens_details"] = {"cached_tokens": usage.cached, **cache_write(usage)}
    if usage.reasoning:
        written["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return written


def prompt_tokens(prompt: str) -> list[ev.Token]:
    """The pieces of an echoed prompt that count as tokens, its words; their log probabilities are
    derived."""
    return [ev.Token(word, logprob(word)) for word in _WORDS.findall(prompt)]


def write_logprobs(
    tokens: Sequence[ev.Token], offset: int, most: int | None, *, head: bool = False
) -> Json | None:
    """The `logprobs` of a choice.

    Args:
        offset: of the first token, in characters from the beginning of the choice's text.
        most: how many tokens of a position are wanted; of derived ones only the chosen one is
            known. None: the choice has no log probabilities.
        head: whether the first token begins the prompt, which nothing could predict.
    """
    if most is None:
        return None
    offsets: list[int] = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.text)
    known = [token if i or not head else None for i, token in enumerate(tokens)]
    return {
        "text_offset": offsets,
        "token_logprobs": [None if token is None else token.logprob for token in known],
        "tokens": [token.text for token in tokens],
        "top_logprobs": [None if token is None else _top(token) for token in known]
        if most
        else None,
    }


def _top(token: ev.Token) -> Json:
    return {other.text: other.logprob for other in (token, *token.top)}
