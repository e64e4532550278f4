"""Mistakes of tests in what they ask of a session: shown at the line of the test, with what to
write instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from mockllm.core.errors import MockLLMError
from mockllm.core.text import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])

_JOURNAL = "the requests so far are in 'journal', such as mockllm_session.journal[0].json"
_JUDGED = "requests are judged when the test is over; verify() does so within it"
_REPLY = "what the model answers is reply(...), once for each answer"
_WORDS = {
    **dict.fromkeys(
        ("requests", "calls", "call_count", "last_request", "history", "exchanges", "called"),
        _JOURNAL,
    ),
    **dict.fromkeys(
        ("respond", "respond_with", "on_message", "when", "mock", "stub", "replies", "queue"),
        _REPLY,
    ),
    **dict.fromkeys(("reset", "clear"), "each test has a session of its own"),
    "base_url": "each API has its own, such as openai_url or anthropic_url; base_urls has all",
}
"""What to write in place of the names that other tools have."""


def at_caller(method: Function) -> Function:
    """The method with its mistakes at the line of its caller: errors of mockllm without the frames
    that found them, and keywords that it does not have with advice."""
    parameters = signature(method).parameters.values()
    known = [given.name for given in parameters if given.kind is not Parameter.VAR_POSITIONAL]

    @wraps(method)
    def call(*args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        for key in keywords:
            if key not in known:
                message = f"{method.__name__}() has no argument {key!r}; {_advice(key, known)}"
                raise TypeError(message)
        try:
            return method(*args, **keywords)
        except MockLLMError as error:
            mistake = error.with_traceback(None)
        raise mistake from None

    return cast("Function", call)


def _advice(key: str, known: list[str]) -> str:
    # Imported here: only mistakes need the language, and tests without a session do not.
    from mockllm.scenario.reading.advice import advise
    from mockllm.scenario.reading.definitions import PROPERTIES

    if "parts" not in known and "attempts" not in known:
        return did_you_mean(key, known, f"there are: {', '.join(known[1:])}")
    if key == "text":
        return "a text stands alone: reply('Hello.')"
    told = advise(key, PROPERTIES["turn"])
    return told or "the keys of a turn are its arguments: see `mockllm docs turns`"


def explain_name(name: str, known: list[str]) -> str:
    """Advice about a name that a session does not have, as the rest of a message."""
    if name.startswith("assert_"):
        return f"; {_JUDGED}"
    if name in _WORDS:
        return f"; {_WORDS[name]}"
    hint = did_you_mean(name, [other for other in known if not other.startswith("_")])
    return f"; {hint}" if hint else ""
