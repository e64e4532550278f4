"""Group G: errors inside of an answer whose status is 200.

The error takes the place of the whole answer (`first`), or of its end: why it ended, and what
it cost (`later`). `[DONE]` still comes, but where the server is known to leave it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.events import StreamError
from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import Turn
from mockllm.protocols.base import dumps
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.framing.changes import is_end
from mockllm.quirks.samples import TEXT

__all__ = ["QUIRKS"]

_Json = dict[str, Any]

UPSTREAM: _Json = {"message": "The upstream provider failed", "code": 502}
REFUSED: _Json = {
    "message": "A tool call was demanded, but the model made none",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "status_code": 400,
}
PLAIN: _Json = {"object": "error", "message": "boom", "code": 400}
BODY: _Json = {
    "error": {"message": "The upstream provider failed", "type": "server_error", "code": 502}
}


def _told(error: _Json) -> StreamError:
    code = error.get("code")
    return StreamError(error["message"], error.get("type"), None if code is None else str(code))


def _alone(error: _Json) -> Callable[[Turn], Turn]:
    return lambda turn: Turn(error=_told(error))


def _after(error: _Json) -> Callable[[Turn], Turn]:
    return lambda turn: replace(turn, finish=None, finish_raw=None, usage=None, error=_told(error))


_Make = Callable[[list[Item], int], Item]
"""Makes the frame of an error, from all frames and how many of them stay."""


def _instead(make: _Make, *, later: bool, done: bool) -> FramesChange:
    """Puts an error in the place of all frames, or of those that end the answer; with `done`,
    a `[DONE]` stays behind it."""

    def change(items: list[Item], context: Context) -> list[Item]:
        marks = [item for item in items if item.data == "[DONE]"]
        told = [item for item in items if item.data != "[DONE]"]
        ends = (place for place, item in enumerate(told) if is_end(item.data, context.api))
        kept = next(ends, len(told)) if later else 0
        return [*told[:kept], make(told, kept), *marks[: int(done)]]

    return change


def _at(items: list[Item], place: int) -> int:
    """When the frame at a place is due; behind the last one, when that is."""
    near = items[place : place + 1] or items[-1:]
    return near[0].at if near else 0


def _event(data: _Json, name: str | None = None) -> _Make:
    def make(items: list[Item], place: int) -> Item:
        return Item(_at(items, place), data, event=name).copy()

    return make


def _with_choices(items: list[Item], place: int) -> Item:
    """A chunk like the others, with an empty choice and the error."""
    chunks = (item.data for item in items if isinstance(item.data, dict))
    like = next((chunk for chunk in chunks if "choices" in chunk), {})
    own = {key: value for key, value in like.items() if key not in ("choices", "error", "usage")}
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return Item(_at(items, place), {**own, "choices": [choice], "error": UPSTREAM}).copy()


def _both(
    make: _Make, error: _Json, *, usual: str = "first", done: bool = True
) -> tuple[Variant, ...]:
    """The error as the first event, and as a later one; the usual form comes first."""
    forms = (
        Variant(
            "first",
            "in place of the whole answer",
            frames=_instead(make, later=False, done=done),
            meaning=_alone(error),
        ),
        Variant(
            "later",
            "in place of the end of the answer",
            frames=_instead(make, later=True, done=done),
            meaning=_after(error),
        ),
    )
    return forms if usual == "first" else forms[::-1]


def _body(pieces: list[TimedBytes], _context: Context) -> list[TimedBytes]:
    return [TimedBytes(pieces[0].at if pieces else 0, dumps(BODY).encode())]


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="err-in-stream",
        group="G",
        title="An event that is an error object and nothing else",
        only=("chat", "responses", "anthropic"),
        servers="vLLM, llama.cpp, OpenRouter, TGI, LiteLLM",
        right="error",
        correct="Raise it with message and code; keep the text so far available",
        faults="It is taken for a chunk without choices: an empty answer, and no error",
        invariant="error-ends",
        sample=TEXT,
        sources=(
            "BerriAI/litellm#40578",
            "ggml-org/llama.cpp#14566",
            "vllm-project/vllm#40986",
            "openai/openai-python#1160",
            "huggingface/text-generation-inference#2668",
            "vercel/ai#1835",
        ),
        variants=_both(_event({"error": UPSTREAM}), UPSTREAM),
    ),
    Quirk(
        name="err-json-200",
        group="G",
        title="A JSON body with an error in place of the stream, under status 200",
        servers="gateways",
        right="error",
        correct="Raise it",
        faults="No event is found in it: an empty answer, and no error",
        invariant="error-ends",
        sample=TEXT,
        sources=(
            "nashsu/llm_wiki#619",
            "mozilla-ai/any-llm#847",
            "apache/rocketmq-dashboard#2178",
        ),
        variants=(
            Variant(
                "",
                "content-type: application/json, and an error object for the whole body",
                bytes=_body,
                content_type="application/json",
                meaning=_alone(BODY["error"]),
            ),
        ),
    ),
    Quirk(
        name="err-with-choices",
        group="G",
        title="A chunk with choices and an error",
        only=("chat",),
        servers="OpenRouter",
        right="error",
        correct="Raise the error",
        faults="The choices are read, the error is passed over",
        invariant="error-ends",
        sample=TEXT,
        sources=("diegosouzapw/OmniRoute#8210", "use-agent-os/agent-os#2215"),
        variants=_both(_with_choices, UPSTREAM, usual="later"),
    ),
    Quirk(
        name="err-event-line",
        group="G",
        title="An error under the event name `error`",
        only=("chat",),
        servers="Groq, fms-guardrails",
        right="error",
        correct="Raise it",
        faults="The event name is passed over",
        invariant="error-ends",
        sample=TEXT,
        sources=("foundation-model-stack/fms-guardrails-orchestrator#436",),
        variants=_both(_event({"error": REFUSED}, "error"), REFUSED, usual="later", done=False),
    ),
    Quirk(
        name="err-object-error",
        group="G",
        title="An error whose fields are those of the event itself",
        only=("chat",),
        servers="older vLLM",
        right="error",
        correct="Raise it",
        faults="It is passed over as an object that is not known",
        invariant="error-ends",
        sample=TEXT,
        variants=_both(_event(PLAIN), PLAIN),
    ),
)
