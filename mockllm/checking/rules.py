"""The one table of what the kit judges: each rule's name, promise, and what breaking it costs.

The invariants say how an answer is put together. The rules of resilience say what a client does
when connections and answers break; two of them are judged of accumulators, too, by streams that are
cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Cost = Literal["wrong call", "data lost", "wrong metadata", "loud failure", "unreliable"]

COST_MEANINGS: Mapping[Cost, str] = {
    "wrong call": "a call is executed that the model did not make",
    "data lost": "text, a call or an error is lost silently",
    "wrong metadata": "ids, usage, finish or role are wrong",
    "loud failure": "the client fails with an error where the stream can be read",
    "unreliable": "the client hangs, retries wrongly, or leaves connections open",
}
"""What a mistake does to the client's users, the worst first."""

COSTS = tuple(COST_MEANINGS)

INVARIANTS: dict[str, str] = {
    "arguments-concatenate": "the arguments of a call are its fragments in order, joined by the "
    "key that the protocol gives them",
    "order-by-index": "calls come out in the order of their index, however they arrived",
    "surface-once": "a call surfaces exactly once",
    "surface-complete": "a call surfaces only when it is complete, never earlier",
    "id-kept": "the first id that a call is given stays its id; `call_id`, not the item's",
    "name-kept": "a name that comes again is not appended, and an empty one erases nothing",
    "zero-arguments": "no fragments, an empty one and `{}` all mean a call without arguments",
    "text-accumulates": "text and reasoning grow by exactly the fragment of each chunk",
    "delta-is-fragment": "what is handed on for a chunk holds the fragment of that chunk alone",
    "delta-first": "a fragment is handed on no later than it shows in the accumulated value",
    "final-replaces": "a value that says it is final replaces what was accumulated",
    "malformed-contained": "arguments that never parse do no harm but to their own call",
    "missing-id": "a call that never gets an id is dealt with as the policy says",
    "unknown-tool": "a call of a tool that was not offered harms no other",
    "unknown-event": "events, fields, parts and blocks that are not known are passed over",
    "null-tolerant": "null or absent content, role, usage, choices and deltas stop nothing",
    "finish-and-usage": "finish and usage are those sent, wherever in the tail they come",
    "stage-empties": "after the end nothing is left over, and streams share nothing",
    "input-untouched": "what is handed in is not modified",
    "stream-equals-body": "the streamed answer equals the plain one of the same turn",
    "chunking-free": "the result does not depend on where the stream is cut",
    "error-ends": "an error in the stream is reported, and nothing pretends to be complete",
    "role-kept": "the role is the assistant's, once, however often it is sent",
    "opaque-kept": "signatures, redacted and encrypted reasoning are kept whole and unchanged",
    "raw-arguments-kept": "arguments that are kept as text are the joined fragments",
    "answer-id-kept": "model and id of the answer are those of the stream",
    "truncated-is-not-complete": "a stream without its end is reported as cut, not as an answer",
}
"""How an answer is put together: by name, the promise; reports list them in this order."""

_RESILIENCE: dict[str, tuple[Cost, str]] = {
    "cut-reported": (
        "data lost",
        "reports a stream that was cut, and marks what came so far as partial",
    ),
    "cut-call-not-executed": (
        "wrong call",
        "does not hand on a tool call whose stream was cut as a valid one",
    ),
    "wrong-body-reported": (
        "data lost",
        "reports an answer with status 200 that is no stream of its API",
    ),
    "no-duplicate-output": ("data lost", "hands on no text twice when it tries again"),
    "no-phantom-call": ("wrong call", "knows only the calls of the try that succeeded"),
    "retry-bounded": (
        "unreliable",
        "stops after its number of tries, and reports the last error",
    ),
    "retry-after-honoured": (
        "unreliable",
        "waits as long as the service says, in every form of the header",
    ),
    "backoff-grows": ("unreliable", "waits longer each time, with jitter"),
    "no-retry-where-useless": (
        "unreliable",
        "does not repeat a request that the service refuses for good",
    ),
    "retry-same": ("unreliable", "repeats the same request, with the same idempotency key"),
    "stall-times-out": (
        "unreliable",
        "gives up a stream that stalls, and not one that is only slow",
    ),
    "cancel-closes": ("unreliable", "closes the connection soon after it was cancelled"),
    "error-names-cause": (
        "wrong metadata",
        "distinguishes overload, rate limits, network and protocol errors",
    ),
    "recovers": ("unreliable", "serves the next request as if nothing had happened"),
    "isolated": ("unreliable", "lets a stream that fails disturb no other one"),
    "leaves-nothing": (
        "unreliable",
        "has no open connection, task or thread when it is done",
    ),
}

RESILIENCE: Mapping[str, str] = {name: text for name, (_, text) in _RESILIENCE.items()}
"""What a resilient client does, by the name of the rule."""

RULE_COSTS: Mapping[str, Cost] = {name: cost for name, (cost, _) in _RESILIENCE.items()}
"""What it costs to break a rule of resilience."""

CUT_RULES = ("cut-reported", "cut-call-not-executed")
"""The rules of resilience that prefixes of streams can show."""


def severity(cost: Cost | None) -> int:
    """The place of a cost among `COSTS`, 0 for the worst; None comes last."""
    return len(COSTS) if cost is None else COSTS.index(cost)


def promise(rule: str) -> str:
    """What a rule promises, as a sentence without its end; "" for a name that is none."""
    if rule in RESILIENCE:
        return f"a client {RESILIENCE[rule]}"
    return INVARIANTS.get(rule, "")
