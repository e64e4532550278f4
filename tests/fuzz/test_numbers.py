"""No number of a request holds the server: wherever a client may write one, a huge one is bounded
before anything is made of it."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.serve.ui import live_page
from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.hostile import _get, _paths, _replaced, _sent
from tests.fuzz.playing import _exchange, _port
from tests.fuzz.valid import SCENARIOS, Valid, control_routes, requests

NUMBERS = (10**9, 10**18, -1, 0)

_PEAK = 24 * 1024 * 1024
"""What one request may take, in bytes; a list with a place for each of 10^9 has 8 GB."""

_VARYING = """
---
scenario: one-of
match: {user: toss}
turns:
  - one_of:
      - reply: {text: Heads.}
      - reply: {text: Tails.}
    repeat: true
---
scenario: again
match: {user: again}
turns:
  - reply: {text: "{{ request.user }}"}
    template: true
  - reply: {text: Again.}
    times: 3
then: restart
---
scenario: polled
route: GET /polled/{id}
turns:
  - answer: {json: {a: 1}}
"""

QUERY = ("limit", "after", "before", "page", "offset", "page_size", "pageSize", "pageToken", "n")
QUERY += ("after_id", "before_id", "starting_after", "depth", "turn", "attempt", "number", "top")


def _page_routes() -> list[Valid]:
    root = "/_mockllm/ui/"
    targets = ["scenarios", "request/default/1", "request/unknown/1"]
    for name in ("one-of", "again", "greets", "calls", "polled"):
        targets += [f"scenario/{name}", f"play/{name}"]
        targets += [f"play/{name}?api={api}&turn=0&attempt=1" for api in PROTOCOLS]
    return [Valid("GET", root + target) for target in targets]


def _places(valid: Valid) -> Iterator[tuple[str, Callable[[int], Valid], Sequence[int]]]:
    """Where a request has a number, or may have one in its query: by name, the request with another
    one there, and which to put there."""

    def at(begin: int, end: int, number: int) -> Valid:
        return replace(valid, target=f"{valid.target[:begin]}{number}{valid.target[end:]}")

    def with_query(names: Iterable[str], number: int) -> Valid:
        mark = "&" if "?" in valid.target else "?"
        query = "&".join(f"{name}={number}" for name in names)
        return replace(valid, target=f"{valid.target}{mark}{query}")

    def with_field(steps: tuple[str | int, ...], number: int) -> Valid:
        return replace(valid, body=_replaced(valid.body, steps, number))

    for found in re.finditer(r"(?<=[/=])\d+(?=$|[&?/])", valid.target):
        yield valid.target[: found.start()], partial(at, *found.span()), NUMBERS
    path = valid.target.partition("?")[0]
    if valid.method == "GET":
        yield f"{path}?", partial(with_query, QUERY), NUMBERS
        for name in QUERY:  # alone, too: the first that is refused hides the others
            yield f"{path}?{name}", partial(with_query, [name]), NUMBERS[:1]
    for steps in _paths(valid.body) if isinstance(valid.body, dict) else ():
        if type(_get(valid.body, steps)) in (int, float):
            fields = [step for step in steps if isinstance(step, str)]
            yield f"{path} {fields}", partial(with_field, steps), NUMBERS


def _every() -> Iterator[Valid]:
    """A request for each place and each number; a place counts once, whatever else differs."""
    seen = set()
    for valid in (*_page_routes(), *control_routes("default"), *requests()):
        for place, put, numbers in _places(valid):
            if (valid.method, place) not in seen:
                seen.add((valid.method, place))
                yield from map(put, numbers)


@pytest.mark.slow
def test_every_number_is_bounded_before_anything_is_made_of_it() -> None:
    """In targets, queries and bodies of control routes, the live page and all APIs."""
    options = ServerOptions(fallback=True, grace=0, speed=0, page=live_page)
    problems: list[str] = []
    with ServerThread(loads(SCENARIOS + _VARYING), options) as server:
        _exchange(_port(server), _sent(requests()[0]))
        tracemalloc.start()
        try:
            for one in _every():
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                answer = _exchange(_port(server), _sent(one))
                took = tracemalloc.get_traced_memory()[1] - before
                what = f"{one.method} {one.target} {json.dumps(one.body, default=str)[:300]}"
                if isinstance(answer, str) or answer.status >= 500:
                    problems.append(f"{answer!s:.200} for {what}")
                elif took > _PEAK:
                    problems.append(f"{took} bytes for {what}")
        finally:
            tracemalloc.stop()
    assert not problems, "\n".join(problems[:40])
