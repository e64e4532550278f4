"""An answer counts where the client sent the one request that is judged."""

from __future__ import annotations

from mockllm.checking.outcome import Outcome
from mockllm.conformance.clients.http_sessions import with_requests
from mockllm.conformance.clients.messages import Answer
from tests.entries import journal_entry

URL = "http://127.0.0.1:1/v1"
PLAYED = journal_entry(path="/v1/chat/completions", outcome="played")
OTHER = journal_entry(path="/v1/models", outcome="invalid", problems=("there is no such route",))


def test_requests_that_are_not_answered_from_the_case() -> None:
    """The reason names the request; of several, that they are too many."""
    answer = Answer(Outcome())
    assert with_requests(answer, [PLAYED], URL) is answer
    assert with_requests(answer, [PLAYED, PLAYED], URL) is answer
    reason = "POST /v1/models was not answered from the case; there is no such route"
    assert with_requests(answer, [OTHER], URL).invalid == reason
    assert with_requests(answer, [PLAYED, OTHER], URL).invalid == (
        f"the client sent 2 requests for one case, and {reason}. "
        "Switch off its retries, and its further requests"
    )
    assert with_requests(answer, [], URL).invalid == f"the client sent no request to {URL}"


def test_an_answer_that_is_not_valid_stays_so() -> None:
    """What the runner did comes before what the client did."""
    broken = Answer(Outcome(), invalid="text: must be a string")
    assert with_requests(broken, [], URL) is broken
