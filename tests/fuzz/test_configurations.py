"""No request breaks a server that does more than to play: one that shares its state, records, or
stands behind its forward proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from mockllm import ServerOptions, ServerThread, load, loads
from mockllm.record.recording.drafting.draft import Line
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions
from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.hostile import Hostile, _body_bytes, _get, _paths, _replaced, _sent
from tests.fuzz.playing import play, send
from tests.fuzz.valid import SCENARIOS, requests
from tests.fuzz.values import Raw
from tests.serve.server.shared_state.replicas import redis_server

Options = dict[str, Any]


@contextmanager
def _sqlite(folder: Path) -> Iterator[Options]:
    yield {"state": f"sqlite:{folder / 'state.db'}"}


@contextmanager
def _redis(folder: Path) -> Iterator[Options]:
    with redis_server(folder) as server:
        yield {"state": server.url}


@contextmanager
def _recorder(folder: Path) -> Iterator[Options]:
    service = ServerOptions(fallback=True, grace=0, speed=0)
    with ServerThread(loads(SCENARIOS), service) as upstream:
        upstreams = dict.fromkeys(PROTOCOLS, upstream.url)
        lines: list[Line] = []
        recorded = folder / "recorded"
        yield {"record": RecordOptions(recorded, upstreams, "add", report=lines.append)}
    assert [line.description for line in lines if line.lost] == []
    assert load([recorded])


CONFIGURATIONS: dict[str, Callable[[Path], Any]] = {
    "one process": lambda _: nullcontext({}),
    "shared state": _sqlite,
    "Redis": _redis,
    "recorder": _recorder,
    "proxy": lambda _: nullcontext({"intercept": InterceptOptions(Hosts(["127.0.0.1"]), 0)}),
}
configurations = pytest.mark.parametrize("configuration", CONFIGURATIONS)
_HALF, _HALF_ID = Raw('"\\ud800"'), Raw('"resp_\\udfff"')


def _half_characters() -> Iterator[Hostile]:
    """Each text of each body as half of a surrogate pair, which UTF-8 cannot hold."""
    seen = set()
    extra = {"conversation": "conv_1", "previous_response_id": "resp_1", "user": "u"}
    for valid in requests():
        if not isinstance(valid.body, dict):
            continue
        body = {**extra, **valid.body}
        for path in _paths(body):
            fields = valid.target, *(step for step in path if isinstance(step, str))
            if isinstance(_get(body, path), str) and fields not in seen:
                seen.add(fields)
                for half in (_HALF, _HALF_ID) if path == ("previous_response_id",) else (_HALF,):
                    data = _sent(valid, _body_bytes(_replaced(body, path, half)))
                    yield Hostile(data, f"{fields}: {half.text}")


@pytest.mark.slow
@configurations
def test_half_a_character_breaks_nothing(configuration: str, tmp_path: Path) -> None:
    """Wherever a request has a text, names and ids among them."""
    with CONFIGURATIONS[configuration](tmp_path) as options:
        # All of them begin with the same words, so a recorder compares each with all before it.
        step = 5 if configuration == "recorder" else 1
        figures = send(islice(_half_characters(), 0, None, step), **options)
    assert figures.problems == {}
    assert figures.requests > 300


@pytest.mark.slow
@configurations
def test_no_request_breaks_a_configuration(configuration: str, tmp_path: Path) -> None:
    """The rules of `test_fuzz`, for each of them."""
    with CONFIGURATIONS[configuration](tmp_path) as options:
        figures = play(210, 15, **options)
    assert figures.problems == {}
