"""Redaction takes time that is proportional to the text, counted in steps: no clock is asked.

Lines of Python are counted while a text is searched. Regular expressions work unseen, so that their
form is judged: what one of them repeats without a bound is the last of it.
"""

from __future__ import annotations

import base64
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.find.patterns import PATTERNS
from mockllm.record.redaction.redact import Redactor
from tests.cases import for_all
from tests.record.redaction.secrets import generator, secret

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
TOKEN = "AAAAAAAAAAAAAAAAAAAAAMLheAAAAAAA0BuSeidULvsea4JtiGRiSDSJSI"  # as those of X begin
MORE = 4


def _steps(text: str) -> int:
    """How many lines of Python run while an exchange with a text is redacted."""
    body = text.encode("utf-8", "surrogateescape")
    headers = (("authorization", f"Bearer {TOKEN}"),)
    exchange = Captured("POST", "https://a.test/v1", headers, b"", 200, (), (TimedBytes(0, body),))
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        Redactor().exchange(exchange)
    finally:
        sys.settrace(before)
    return count


def _grows(make: Callable[[int], str], size: int) -> float:
    """By how much the steps grow where a text becomes four times as long."""
    make_text = make(size), make(size * MORE)
    _steps(make_text[0])  # what is cached for all texts is not counted
    few, many = map(_steps, make_text)
    return many / few


def _stream(count: int, **fields: Any) -> str:
    events = (
        {"choices": [{"index": number % 3, "delta": {"content": part}}], **fields}
        for number in range(count)
        for part in (f"x {KEY[:20]}", f"{KEY[20:]} y")
    )
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def _items(count: int) -> str:
    kind = "response.output_text.delta"
    events = (
        {"type": kind, "item_id": f"m{number % 5}", "delta": part}
        for number in range(count)
        for part in (f"x {KEY[:20]}", f"{KEY[20:]} y")
    )
    return "".join(f"event: {kind}\ndata: {json.dumps(event)}\n\n" for event in events)


TEXTS: dict[str, tuple[Callable[[int], str], int]] = {
    "copies of a key in three choices": (_stream, 60),
    "copies of a key in five items": (_items, 60),
    "copies of a key in a text": (lambda count: f"the key is {KEY}. " * count, 100),
    "different keys": (
        lambda count: " ".join(f"sk-ant-api03-{number:08}Ab3dEf6hIj" for number in range(count)),
        100,
    ),
    "different passwords": (
        lambda count: " ".join(f"password=hunter{number:04}" for number in range(count)),
        100,
    ),
    "a long key of repeats": (lambda count: f"sk-{'a1B2c3D4' * count} {'a1B2c3D4' * count}", 400),
    "zeros in base64": (lambda count: base64.b64encode(bytes(count)).decode(), 9_000),
    "zeros in JSON": (
        lambda count: json.dumps({"audio": base64.b64encode(bytes(count)).decode()}),
        9_000,
    ),
    "chunks of zeros": (
        lambda count: f"data: {json.dumps({'type': 'audio', 'delta': 'A' * 400})}\n\n" * count,
        40,
    ),
    **{
        f"{unit!r} repeated": (lambda count, unit=unit: unit * count, 2_000)  # type: ignore[misc]
        for unit in (
            "eyJ-",
            "-eyJ",
            "sk-",
            "a@b.",
            "://a:",
            "key=",
            "pwd=a;",
            "\\n",
            "%41",
            "A/",
            "&a=",
        )
    },
}


@pytest.mark.slow
@for_all("name", TEXTS)
def test_steps_are_proportional_to_the_text(name: str) -> None:
    """Four times the text takes four times the steps, not sixteen times."""
    assert _grows(*TEXTS[name]) < MORE * 1.5


@pytest.mark.slow
@for_all("seed", range(20))
def test_steps_for_random_runs_and_repeats(seed: int) -> None:
    """Of secrets, words, runs of one character and random characters, in any order."""
    rng = generator(seed)
    pieces = [
        rng.choice(
            (
                secret(rng, rng.randrange(100))[0],
                rng.choice("A0/-=e \n") * rng.randrange(1, 200),
                rng.choice(("eyJ", "sk-", "key=", "data: ", "@a.b ", '{"a": "b"}')) * 9,
                "".join(random.Random(seed).choices("abcXYZ019+/-_. ", k=90)),
            )
        )
        for _ in range(12)
    ]
    assert _grows("".join(pieces).__mul__, 4) < MORE * 1.5


# Expressions

_ENDS = {
    "Facebook token": "no other one can begin in it",
    "Mapbox token": "a point ends it, and one is in the beginning",
    "SendGrid key": "the same",
    "Google token": "a letter or digit ends it, and one is in the beginning",
    "Typeform token": "the same",
    "password": "the same; or a bound",
    "query parameter": "a sign that ends a sentence is left out, and none is in the beginning",
    "token": "no other one can begin in it; or as in a Google token",
}
"""Kinds of patterns in which something follows a repetition, and why their time is linear."""


def _inner_repeats(parsed: Any, *, last: bool = True) -> Iterator[str]:
    """The repetitions without a bound after which something could fail."""
    items = list(parsed)
    for index, (operation, value) in enumerate(items):
        is_last = last and index == len(items) - 1
        match str(operation):
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, inner = value
                if int(high) > 10_000 and not is_last:
                    yield f"{{{low},}} at {index}"
                yield from _inner_repeats(inner, last=is_last and int(high) == 1)
            case "SUBPATTERN":
                yield from _inner_repeats(value[3], last=is_last)
            case "BRANCH":
                for branch in value[1]:
                    yield from _inner_repeats(branch, last=is_last)


def test_repetitions_without_a_bound_are_the_last() -> None:
    """Then a match that has begun succeeds, and the search goes on behind it."""
    parse = re._parser.parse  # type: ignore[attr-defined]
    inner = {
        pattern.kind
        for pattern in PATTERNS
        if list(_inner_repeats(parse(pattern.regex, re.DOTALL)))
    }
    assert inner == set(_ENDS)
