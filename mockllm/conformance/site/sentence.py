"""What happened in a case, in one plain sentence. Pure."""

from __future__ import annotations

from mockllm.checking.rules import RESILIENCE
from mockllm.conformance.results import CaseResult
from mockllm.core.text import shorten

_LONGEST = 180


def sentence(case: CaseResult) -> str:
    """What the client does in a case.

    Its own error says the most. Otherwise it is the first difference: the others follow from it.
    """
    if case.verdict in ("crash", "rejected") and case.group not in RESILIENCE:
        return _of_error(case)
    if case.differences and case.verdict != "adapter":
        text = _short(case.differences[0].rstrip("."))
        return f"{text[:1].upper()}{text[1:]}."
    reason = (case.reason or "no reason is recorded").removeprefix("accepted: ").rstrip(".")
    text = _WITHOUT_MISTAKE[case.group in RESILIENCE].get(case.verdict, "Not judged: {}.")
    once = f" Once in three times it was not: {case.unconfirmed}." if case.unconfirmed else ""
    return text.format(reason) + once


_WITHOUT_MISTAKE = {
    False: {
        "right": "The client ends with the expected outcome.",
        "tolerated": "The client ends with another outcome that is acceptable: {}.",
        "not judged": "This case was not judged: {}.",
        "adapter": "The adapter failed, and not the client, so that nothing is known of the "
        "client.",
    },
    True: {
        "right": "The rule is kept.",
        "not applicable": "The rule does not apply: {}.",
    },
}
"""By the verdict; of cases in which a rule of resilience was judged, and of the others."""


def _of_error(case: CaseResult) -> str:
    error = _short(case.exception or next(iter(case.differences), case.reason))
    if case.reaction != "same":
        return f"The client crashes instead of reporting a clear error: {error}"
    does = "crashes" if case.verdict == "crash" else "reports an error"
    return f"The client {does} where the stream can be read: {error}"


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _LONGEST, keep=_LONGEST)
