"""A page in Chromium calls the server from another origin, with `fetch`.

The page is served from a port of its own. Nothing is known here that a browser does not know: what
it lets the page read is what it would let the pages of users read.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from mockllm.play.replay.client_requests import first_body
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.serve.ui import live_page
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)
CONNECTION = {"transfer-encoding", "connection", "content-length"}
"""Headers that may differ, or that a page does not see."""

SCENARIOS = """
scenario: stuck
match: {user: go on}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
---
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hello there., split: words}
---
scenario: busy
match: {user: busy}
turns:
  - http: {status: 429, retry_after: 2s}
    repeat: true
---
scenario: files
route: GET /v1/files
turns: [{answer: {json: {data: []}, headers: {x-own: "1"}}}]
"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the page, without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the page."""
    handler = partial(Handler, directory=str(Path(__file__).parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(origin: str) -> Iterator[Any]:
    """Chromium, with the page open."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Debian's packages chromium and chromium-driver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        driver.set_script_timeout(GIVE_UP)
        driver.set_page_load_timeout(GIVE_UP)
        driver.get(f"{origin}/page.html")
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def call(browser: Any) -> Any:
    """Calls a URL from the page: the answer as the page sees it."""

    def call(url: str, **init: Any) -> dict[str, Any]:
        script = "const done = arguments[2]; call(arguments[0], arguments[1]).then(done)"
        seen: dict[str, Any] = browser.execute_async_script(script, url, init)
        return seen

    return call


def request(api: str, user: str, *, stream: bool = True) -> tuple[str, dict[str, Any]]:
    """The path of a request, and what `fetch` gets for it."""
    client = PROTOCOLS[api].client
    body = first_body(PROTOCOLS[api], "some-model", user)
    if client.stream_field:
        body[client.stream_field] = stream
    own = {"content-type": "application/json", "authorization": "Bearer k", "x-page": "1"}
    path = client.path if stream else client.body_path or client.path
    headers = {**client.headers, **own}
    init = {"method": "POST", "headers": headers, "body": json.dumps(body)}
    return path.replace("{model}", "some-model"), init


@pytest.mark.parametrize("api", OVER_HTTP)
def test_a_page_streams_over_each_api(serve, call, api):
    """It reads a stream while that goes on, and sees all headers that other clients see."""
    served = serve(SCENARIOS)
    path, init = request(api, "go on")
    seen = call(served.url + path, until="first", **init)
    assert (seen["status"], seen["type"], seen["ended"]) == (200, "cors", False)
    path, init = request(api, "hello")
    whole = call(served.url + path, **init)
    plain = httpx.post(
        served.url + path, content=init["body"], headers=init["headers"], timeout=GIVE_UP
    )
    assert (whole["ended"], whole["text"]) == (True, plain.text)
    assert plain.headers.keys() - CONNECTION <= whole["headers"].keys()


@pytest.mark.parametrize("api", OVER_HTTP)
def test_a_page_reads_errors_of_each_api(serve, call, api):
    """HTTP errors, refused requests and unknown scenarios are answers, and have their headers."""
    served = serve(SCENARIOS)
    path, init = request(api, "busy")
    busy = call(served.url + path, **init)
    assert busy["status"] == 429
    assert "error" in busy["text"] or '"message"' in busy["text"]
    plain = httpx.post(
        served.url + path, content=init["body"], headers=init["headers"], timeout=GIVE_UP
    )
    assert busy["headers"].get("retry-after") == plain.headers.get("retry-after")
    path, init = request(api, "unknown", stream=False)
    assert call(served.url + path, **init)["status"] == 404
    assert call(served.url + path, **{**init, "body": "{"})["status"] == 400


def test_a_page_reads_look_ups_and_routes(serve, call):
    """Models, counts of tokens, routes and unknown paths."""
    served = serve(SCENARIOS, fallback=True)
    key = {"authorization": "Bearer k", "x-stainless-os": "x"}
    models = call(f"{served.url}/v1/models", headers=key)
    assert (models["status"], "some" in models["text"] or "data" in models["text"]) == (200, True)
    _, init = request("anthropic", "hello", stream=False)
    counted = call(f"{served.url}/v1/messages/count_tokens", **init)
    assert json.loads(counted["text"])["input_tokens"] > 0
    files = call(f"{served.url}/v1/files")
    assert (files["text"], files["headers"]["x-own"]) == ('{"data":[]}', "1")
    assert call(f"{served.url}/v1/nothing")["status"] == 404


@pytest.mark.parametrize("is_named", [False, True])
def test_a_page_reads_stored_answers_where_it_is_named(serve, call, origin, is_named):
    """They show what another client sent, and their ids are the same on every server."""
    served = serve(SCENARIOS, allowed_origins=(origin,) if is_named else ())
    path, init = request("responses", "hello", stream=False)
    agent = httpx.post(
        served.url + path, content=init["body"], headers=init["headers"], timeout=GIVE_UP
    )
    stored = f"{served.url}/v1/responses/{agent.json()['id']}"
    for url in (f"{stored}/input_items", stored):
        seen = call(url)
        assert (seen["status"], "hello" in seen["text"].lower()) == (
            (200, True) if is_named else (403, False)
        )
    deleted = call(stored, method="DELETE", headers={"authorization": "Bearer k"})
    assert deleted["status"] == (200 if is_named else 403)
    assert served.http.get(stored).status_code == (404 if is_named else 200)


def test_a_page_creates_a_run_and_streams_it(serve, call):
    """As a client does whose agents have paths of their own."""
    served = serve(SCENARIOS, paths=(("agui", "/api/rooms/{room}/agui/{thread}/{run}"),))
    rooms = f"{served.url}/api/rooms/main/agui"
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    thread = json.loads(call(rooms, method="POST", headers=headers, body="{}")["text"])
    (run,) = thread["runs"]
    body = json.dumps({"messages": [{"id": "1", "role": "user", "content": "hello"}]})
    url = f"{rooms}/{thread['thread_id']}/{run}"
    streamed = call(url, method="POST", headers=headers, body=body)
    assert streamed["text"].startswith('data: {"type":"RUN_STARTED"')
    assert run in streamed["text"]


def test_control_routes_refuse_the_page(serve, call, origin):
    """It reads nothing and changes nothing, with a preflight request or without."""
    served = serve(SCENARIOS, allowed_origins=("http://127.0.0.1:1",))
    assert call(f"{served.url}/_mockllm/journal") == {"failed": "TypeError"}
    for kind in ("text/plain", "application/json"):
        init = {"method": "POST", "headers": {"content-type": kind}, "body": '{"session": "x"}'}
        assert call(f"{served.url}/_mockllm/sessions", **init) == {"failed": "TypeError"}
    served.http.post("/_mockllm/sessions", json={"session": "kept"})
    deleted = call(f"{served.url}/_mockllm/sessions/kept", method="DELETE")
    assert deleted == {"failed": "TypeError"}
    listed = served.http.get("/_mockllm/sessions").json()["sessions"]
    assert [one["session"] for one in listed] == ["kept"]
    refused = served.http.get("/_mockllm/sessions", headers={"origin": origin})
    assert f"--allow-origin {origin}" in refused.json()["error"]["message"]


def test_control_routes_answer_a_page_that_is_named(serve, call, origin):
    """It makes a session with a scenario, streams in it, reads the verdict, and deletes it."""
    served = serve(SCENARIOS, allowed_origins=(origin,))
    scenario = {"scenario": "own", "turns": [{"reply": {"text": "From the page."}}]}
    init = {"method": "POST", "headers": {"content-type": "application/json"}}
    sessions = f"{served.url}/_mockllm/sessions"
    made = json.loads(call(sessions, **init, body=json.dumps({"scenarios": scenario}))["text"])
    path, ask = request("chat", "whatever")
    assert "page" in call(made["url"] + path, **ask)["text"]
    assert json.loads(call(made["verify"])["text"])["good"]
    wrong = call(sessions, **init, body='{"scenario": {}}')
    assert (wrong["status"], "did you mean" in wrong["text"]) == (400, True)
    assert call(f"{sessions}/{made['session']}", method="DELETE")["status"] == 200
    assert call(f"{sessions}/{made['session']}")["status"] == 404


SECRET = "only for this machine"
ATTACK = """
const [urls, embedded, origin, done] = arguments;
const seen = [];
const read = async (url, init) => {
  try { seen.push(await (await fetch(url, init)).text()); } catch (error) { seen.push(error.name); }
};
const load = (kind, url) => new Promise((resolve) => {
  const element = document.createElement(kind);
  element.onload = element.onerror = () => { element.remove(); resolve(); };
  element.src = url;
  document.body.append(element);
});
const socket = (url) => new Promise((resolve) => {
  const opened = new WebSocket(url.replace("http", "ws"));
  opened.onmessage = (event) => { seen.push(event.data); };
  opened.onopen = opened.onclose = resolve;
});
const header = { "x-mockllm-origin": origin };
const body = "{}";
const headers = { "content-type": "application/json" };
Promise.all(urls.map(async (url) => {
  await read(url);
  await read(url, { headers: header });
  await read(url, { mode: "no-cors" });
  await read(url, { method: "POST", body, headers });
  await read(url, { method: "POST", body, mode: "no-cors" });
  await read(url, { method: "DELETE" });
  await load("img", url);
  if (!embedded.some((path) => url.endsWith(path))) return;
  await load("script", url);
  await load("iframe", url);
  await socket(url);
})).then(() => done(seen));
"""


def test_a_page_reaches_nothing_through_any_listener(call, browser, tmp_path):
    """It tries each route of a recorder and of its proxy in every way that a page has: no service
    is asked, nothing is shown, and nothing changes."""

    async def script(request, wire):
        await wire.body(SECRET, "access-control-allow-origin: *")

    with OddUpstream(script) as service:
        upstreams = dict.fromkeys(OVER_HTTP, service.url)
        intercept = InterceptOptions(Hosts(("127.0.0.1",)), 0, tunnels=True)
        options = ServerOptions(
            record=RecordOptions(tmp_path, upstreams), intercept=intercept, page=live_page, grace=0
        )
        with ServerThread((), options) as thread:
            kept = httpx.post(f"{thread.url}/_mockllm/sessions", json={"session": "kept"})
            assert kept.status_code == 201
            routes = {route.path for one in PROTOCOLS.addresses.values() for route in one.routes}
            paths = ["/", "/nothing", *(path.replace("{", "").replace("}", "") for path in routes)]
            paths += [f"/_mockllm/{path}" for path in CONTROL]
            places = (thread.url, f"{thread.url}/s/kept", thread.server.proxy_url)
            urls = [f"{place}{path}" for place in places for path in paths]
            seen = browser.execute_async_script(ATTACK, urls, EMBEDDED, service.url)
            assert service.requests == []
            assert not any(SECRET in text or '"session"' in text for text in seen)
            listed = httpx.get(f"{thread.url}/_mockllm/sessions").json()["sessions"]
            assert "kept" in {entry["session"] for entry in listed}
            assert httpx.get(f"{thread.url}/v1/anything").text == SECRET  # a program is served
    assert len(seen) > 1000


CONTROL = (
    *("health", "ready", "metrics", "verify", "journal", "scenarios", "sessions", "sessions/kept"),
    *("journal?session=kept", "ui", "ui/live", "ui/state", "ui/scenarios", "ui/play/hello"),
)
EMBEDDED = ("/nothing", "/v1/models", "/v1/chat/completions", "/journal", "/ui")
