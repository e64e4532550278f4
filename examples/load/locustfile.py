"""Streams through a gateway: how late each event is, and whether every word arrives.

    mockllm serve examples/load/scenarios.yaml
    locust -f examples/load/locustfile.py --headless -u 500 -r 50 -t 60s --host http://GATEWAY

`LOAD_PATH` (default /v1/chat/completions), `LOAD_MODEL` and `LOAD_KEY` are for the gateway.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable

from locust import HttpUser, constant, events, task

PATH = os.environ.get("LOAD_PATH", "/v1/chat/completions")
BODY = {
    "model": os.environ.get("LOAD_MODEL", "gpt-4o"),
    "messages": [{"role": "user", "content": "load stream"}],
    "stream": True,
}
HEADERS = {"authorization": f"Bearer {os.environ.get('LOAD_KEY', 'any')}"}
TEXT = " ".join(str(number) for number in range(1, 201))
EVERY = 0.02  # seconds between two words, as in scenarios.yaml


class Chat(HttpUser):
    """A user who reads one answer after the other. (FastHttpUser hands on no event before 1,024
    bytes have come.)"""

    wait_time = constant(0)

    @task
    def stream(self) -> None:
        """One stream; Locust's table gets lines for its first word, for the mean time between
        two words, and for the latest one."""
        began = time.perf_counter()
        with self.client.post(
            PATH, json=BODY, headers=HEADERS, timeout=120, stream=True, catch_response=True
        ) as response:
            if response.status_code != 200:
                response.failure(f"status {response.status_code}")
                return
            arrivals = []
            text = ""
            for word in words(response.iter_lines()):
                arrivals.append(time.perf_counter())
                text += word
            if text != TEXT:
                response.failure(f"another text: {len(arrivals)} words, ends in {text[-20:]!r}")
                return
        report("first word", arrivals[0] - began)
        report("between two words", (arrivals[-1] - arrivals[0]) / (len(arrivals) - 1))
        late = max(at - arrivals[0] - EVERY * place for place, at in enumerate(arrivals))
        report("latest word, after its time", late)


def words(lines: Iterable[bytes]) -> Iterable[str]:
    """The words of a stream of Chat Completions."""
    for line in lines:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                if choice["delta"].get("content"):
                    yield choice["delta"]["content"]


def report(name: str, seconds: float) -> None:
    """Adds a time to Locust's table."""
    events.request.fire(
        request_type="SSE",
        name=name,
        response_time=seconds * 1000,
        response_length=0,
        exception=None,
        context={},
    )
