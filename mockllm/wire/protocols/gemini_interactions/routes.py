"""Interactions that are kept: look-ups, progress in the background, and streams that are resumed.

https://ai.google.dev/gemini-api/docs/interactions/background
"""

from __future__ import annotations

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.wire.protocols.base import Lookup
from mockllm.wire.protocols.gemini_interactions.errors import invalid
from mockllm.wire.protocols.gemini_interactions.fields import PREFIX, event_number
from mockllm.wire.protocols.gemini_interactions.input import pairing_error, steps_of
from mockllm.wire.protocols.gemini_interactions.request import PREVIOUS
from mockllm.wire.protocols.records import Background, Fields, JobState, Json, StoredAnswers

_KEPT = ("id", "created", "updated", "object", "model", "agent")
"""The fields of an interaction that is not over."""


def _until_done(answer: Fields, state: JobState) -> Json:
    status = "cancelled" if state == "cancelled" else "in_progress"
    kept = {name: answer[name] for name in _KEPT if name in answer}
    return {"id": kept.pop("id"), "status": status, **kept}


def _events_before(target: Target) -> int | None:
    """One more than the number in `last_event_id`, as the events count from 0."""
    if target.query.get("stream") != "true":
        return None
    last = target.query.get("last_event_id", "")
    number = event_number(last) if last else -1
    if number is None:
        raise invalid("last_event_id", f"Invalid input at 'last_event_id': no event is '{last}'.")
    return number + 1


def _not_found(id: str) -> RequestError:
    return RequestError(
        f"Interaction '{id}' not found. mockllm knows the ids of the answers that it gave from the "
        "scenarios it serves now.",
        status=404,
    )


STORED_ANSWERS = StoredAnswers(
    prefix=PREFIX,
    segment="interaction_id",
    field=PREVIOUS,
    is_stored=lambda body: body.get("store") is not False,
    not_found=_not_found,
    previous_not_found=_not_found,
    missing_result=lambda _call: pairing_error("input"),
    unknown_result=lambda _call: pairing_error("input"),
    background=Background(
        is_asked=lambda body: body.get("background") is True,
        until_done=_until_done,
        events_before=_events_before,
        not_cancelled=lambda other: RequestError(
            f"Interaction '{other}' cannot be cancelled: it does not run in the background.",
            code="failed_precondition",
        ),
    ),
)


def stored_answer(lookup: Lookup) -> Json:
    """The interaction with all its steps, of which the first are those of the client."""
    query, given = lookup.target.query, lookup.request.get("input")
    if query.get("stream") == "true":
        raise invalid(
            "stream",
            "Only interactions that run in the background can be streamed again: create it with "
            "'background': true, or read it without 'stream'.",
        )
    answer = dict(lookup.answer)
    if "steps" in answer:
        answer["steps"] = [*steps_of(given), *answer["steps"]]
    return answer | ({"input": given} if query.get("include_input") == "true" else {})
