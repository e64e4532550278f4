"""What a test with `mockllm_session` and one request costs:
`python measurements/benchmarks/plugin.py`.

Both kinds of test are in one pytest run, in turn: with the fixture and one reply, and with a server
that aiohttp alone runs and whose answer has the same size. The client is `http.client`, with a new
connection for each request. The difference of the medians is what the fixture costs; it has to be
below 5 ms on a machine that does nothing else, where the plain test takes about 1 ms. A second
figure is what the first test of a run waits for the server to start.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GOAL = 5.0
"""Milliseconds."""

_TESTS = '''
import asyncio
import http.client
import os
import threading
import urllib.parse

import pytest
from aiohttp import web

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "Hello"}]}'
HEADERS = {"authorization": "Bearer x", "content-type": "application/json"}


def post(url):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    connection.request("POST", parts.path + "/chat/completions", BODY, HEADERS)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200
    return data


@pytest.fixture(scope="session")
def plain_server():
    """The URL of a server that aiohttp alone runs, in a thread of its own."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    urls = []

    async def answer(request):
        await request.read()
        return web.Response(body=b"{}" + b" " * 569, content_type="application/json")

    async def start():
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        urls.append("http://127.0.0.1:%d/v1" % runner.addresses[0][1])
        ready.set()

    def run():
        loop.create_task(start())
        loop.run_forever()

    threading.Thread(target=run, daemon=True).start()
    ready.wait()
    yield urls[0]
    loop.call_soon_threadsafe(loop.stop)


@pytest.mark.parametrize("n", range({count}))
@pytest.mark.parametrize("kind", ["plain", "mockllm"])
def test_one_request(kind, n, request):
    if kind == "plain":
        post(request.getfixturevalue("plain_server"))
    else:
        request.getfixturevalue("mockllm_session").reply("Hello there.")
        post(os.environ["OPENAI_BASE_URL"])
'''

# The hooks of this file put the kinds in turn, and measure each test from its set-up to its end.
_HOOKS = """
import json
import time

import pytest

TIMES = {"plain": [], "mockllm": []}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.callspec.params["n"], item.callspec.params["kind"]))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    began = time.perf_counter()
    result = yield
    TIMES[item.callspec.params["kind"]].append(time.perf_counter() - began)
    return result


def pytest_sessionfinish():
    print("\\nTIMES " + json.dumps(TIMES))
"""


def measure(count: int = 300) -> dict[str, list[float]]:
    """The seconds of each test, by its kind."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = ("-q", "-s", "-p", "no:cacheprovider", "-p", "mockllm_pytest.plugin")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_it.py").write_text(_TESTS.replace("{count}", str(count)))
        Path(folder, "conftest.py").write_text(_HOOKS)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, folder],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("TIMES ")]
    times: dict[str, list[float]] = json.loads(line.removeprefix("TIMES "))
    return times


def main() -> None:
    """Prints the figures."""
    times = measure()
    plain, ours = (statistics.median(times[kind]) * 1000 for kind in ("plain", "mockllm"))
    first = (times["mockllm"][0] - statistics.median(times["mockllm"])) * 1000
    cost = ours - plain
    print(f"  a test with one request: {ours:.2f} ms with mockllm_session, {plain:.2f} ms with a")
    print(f"  plain aiohttp server; the fixture costs {cost:.2f} ms (goal: below {GOAL:.0f} ms)")
    print(f"  the first test waits {first:.0f} ms more, for the server to start")


if __name__ == "__main__":
    main()
