"""The processor time of a server for each request that a recording answers.

    python measurements/benchmarks/recorded.py [--rounds 5]

Requests are those that were recorded, byte by byte, and the same with their fields in another
order, as another version of an SDK sends them; short ones, and ones of 20 messages and 50 kB. Each
comes once to a server, as in a test. Each figure is that of the best server, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from pathlib import Path

import _load

CHAT = "https://api.odd.test/v1/chat/completions"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/odd-1:generateContent"
HEADERS = {"content-type": "application/json", "x-goog-api-key": "mock-key"}
SIZES = {"short": (1, 20), "long": (20, 2500)}
REQUESTS, WARM_UP = 24, 4


def chat(which: int, count: int, size: int) -> tuple[dict, dict]:
    """A request and its answer."""
    roles = ["user" if n % 2 == 0 else "assistant" for n in range(count - 1)] + ["user"]
    messages = [{"role": role, "content": text(which, n, size)} for n, role in enumerate(roles)]
    message = {"role": "assistant", "content": "Yes."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "odd-1"}
    return {"model": "odd-1", "messages": messages}, {**answer, "choices": [choice]}


def gemini(which: int, count: int, size: int) -> tuple[dict, dict]:
    """A request and its answer, whose model is in the path."""
    roles = ["user" if n % 2 == 0 else "model" for n in range(count - 1)] + ["user"]
    contents = [
        {"role": role, "parts": [{"text": text(which, n, size)}]} for n, role in enumerate(roles)
    ]
    content = {"role": "model", "parts": [{"text": "Yes."}]}
    answer = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    return {"contents": contents, "generationConfig": {"temperature": 0.5}}, answer


def text(which: int, number: int, size: int) -> str:
    """The text of a message of a request."""
    return " ".join(f"request{which} word{number}-{n}" for n in range(size))[:size]


def cassette(url: str, exchanges: list[tuple[dict, dict]]) -> str:
    """A VCR cassette; JSON is YAML."""
    kind = {"content-type": ["application/json"]}
    status = {"code": 200, "message": "OK"}
    entries = [
        {
            "request": {"method": "POST", "uri": url, "headers": kind, "body": json.dumps(sent)},
            "response": {"status": status, "headers": kind, "body": {"string": json.dumps(answer)}},
        }
        for sent, answer in exchanges
    ]
    return json.dumps({"interactions": entries, "version": 1})


def time_on_processor(pid: int) -> int:
    """Nanoseconds of the main thread of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def time_of_each(scenarios: str, path: str, bodies: list[bytes]) -> float:
    """Microseconds of a new server for a request."""
    with _load.server([*_load.ASYNCIO, "serve", scenarios, "--port", "0"]) as (port, pid):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        for number, body in enumerate(bodies):
            if number == WARM_UP:
                before = time_on_processor(pid)
            connection.request("POST", path, body, HEADERS)
            answer = connection.getresponse()
            assert b"Yes." in answer.read(), answer.status
        taken = time_on_processor(pid) - before
        connection.close()
    return taken / (len(bodies) - WARM_UP) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for api, url, make in (("chat", CHAT, chat), ("gemini", GEMINI, gemini)):
        for name, size in SIZES.items():
            with tempfile.TemporaryDirectory() as folder:
                exchanges = [make(number, *size) for number in range(REQUESTS)]
                Path(folder, "it.yaml").write_text(cassette(url, exchanges))
                command = [sys.executable, "-m", "mockllm", "import", f"{folder}/it.yaml"]
                to = f"{folder}/scenarios"
                subprocess.run([*command, "-o", to], check=True, stdout=subprocess.DEVNULL)
                sent = [request for request, _ in exchanges]
                others = [dict(reversed(request.items())) for request in sent]
                path = "/" + url.split("/", 3)[3]
                for how, requests in (("as recorded", sent), ("in another order", others)):
                    bodies = [json.dumps(request).encode() for request in requests]
                    found = [time_of_each(to, path, bodies) for _ in range(options.rounds)]
                    print(f"{api}, {name}, {how}: {min(found):.0f} µs", flush=True)


if __name__ == "__main__":
    main()
