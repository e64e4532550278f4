"""The invariants that the kit checks: the names in reports, and what each one promises."""

from __future__ import annotations

__all__ = ["INVARIANTS"]

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
"""By name, the promise; reports list them in this order."""
