"""Pages in browsers: the APIs answer pages of every origin, the control routes those that are named
(CORS, https://fetch.spec.whatwg.org/#http-cors-protocol)."""

import httpx
import pytest

from mockllm import ServerThread
from mockllm.core.errors import UsageError
from mockllm.play.replay.client_requests import first_body
from mockllm.serve.server.http.access import check_origin
from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.ui import live_page
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.timeouts import GIVE_UP

SCENARIOS = """
scenario: hello
match: {user: hello}
turns:
  - attempts: [{http: 429, retry_after: 2s}]
    reply: {text: Hello., split: 2}
---
scenario: files
route: GET /v1/files
turns: [{answer: {json: []}}]
---
scenario: empty
route: DELETE /v1/files
turns: [{answer: {status: 204}}]
"""
PAGE = "http://localhost:3000"
CHAT = "/v1/chat/completions"
PREFLIGHT = {"origin": PAGE, "access-control-request-method": "GET"}


def assert_readable(answer):
    assert answer.headers.get("access-control-allow-origin") == "*", answer.text
    assert answer.headers.get("access-control-expose-headers") == "*", answer.text


# The APIs


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_pages_read_answers_and_errors_of_every_api(serve, api):
    """Streams, HTTP errors, refused and unmatched requests can be read, with all their headers."""
    served = serve(SCENARIOS)
    client = PROTOCOLS[api].client
    path, headers = client.path_of("some-model"), {"origin": PAGE, **client.headers}
    seen = []
    for user in ("hello", "hello", "unknown"):
        body = first_body(PROTOCOLS[api], "some-model", user)
        answer = served.http.post(path, json=body, headers=headers)
        seen.append(answer.status_code)
        assert_readable(answer)
    assert seen == [429, 200, 404]
    for content in (b"{", b"{}"):
        refused = served.http.post(path, content=content, headers=headers)
        assert refused.status_code in (400, 422)
        assert_readable(refused)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/m", 200),
        ("GET", "/v1beta/models?key=k", 200),
        ("GET", "/v1/files", 200),
        ("DELETE", "/v1/files", 204),
        ("HEAD", "/v1/files", 200),
        ("GET", "/v1/messages", 405),
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/moderations", 200),
    ],
)
def test_pages_read_every_other_route(serve, method, path, status):
    """Look-ups, routes of scenarios, fallbacks and unknown routes can be read, too."""
    served = serve(SCENARIOS, fallback=True)
    sent = {"json": {"input": "x"}} if method == "POST" else {}
    answer = served.http.request(method, path, headers={"origin": PAGE}, **sent)
    assert answer.status_code == status
    assert_readable(answer)


def test_pages_read_counts_of_tokens(serve):
    """Counts of tokens can be read."""
    served = serve(SCENARIOS)
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    assert_readable(served.http.post("/v1/messages/count_tokens", json=body, headers=headers))
    text = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    assert_readable(served.http.post("/v1beta/models/m:countTokens?key=k", json=text))


def test_pages_read_the_error_for_a_large_body(serve):
    """A page learns why its request was refused, also if the connection is closed then."""
    answer = serve(SCENARIOS, max_body=10).http.post(CHAT, content=b"x" * 20)
    assert answer.status_code == 413
    assert_readable(answer)


@pytest.mark.parametrize(
    ("requested", "allowed"),
    [
        ("authorization,content-type,x-own", "authorization,content-type,x-own"),
        ("Authorization, X-Stainless-OS", "Authorization, X-Stainless-OS"),
        ("", "*"),
        ("a b", "*"),
        ("a,,b", "*"),
        ("x-mockllm-origin", ""),
        ("authorization,X-Mockllm-Origin,x-own", "authorization, x-own"),
    ],
)
def test_a_preflight_allows_the_headers_that_it_names(serve, requested, allowed):
    """`*` does not cover `authorization`, so headers are named as they were requested."""
    headers = {**PREFLIGHT, "access-control-request-headers": requested}
    answer = serve(SCENARIOS).http.options("/s/any/v1/models", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-headers"] == allowed
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_page_reads_what_a_recorder_passes_on(tmp_path):
    """The recorder adds the headers that the service lacks, for pages only, and records none."""
    own: list[str] = []

    async def script(request, wire):
        await wire.body('{"error": {"message": "no"}}', *own, status="429 Too Many")

    def sent(headers):
        return httpx.post(url + CHAT, json={"model": "m"}, headers=headers, timeout=GIVE_UP)

    with OddUpstream(script) as upstream:
        record = RecordOptions(tmp_path, {"chat": upstream.url}, "add")
        with ServerThread((), ServerOptions(record=record, allowed_origins=(PAGE,))) as recorder:
            url = recorder.url
            assert_readable(sent({"origin": PAGE}))
            assert "access-control-allow-origin" not in sent({}).headers
            own.append("Access-Control-Allow-Origin: https://only.test")
            named = sent({"origin": PAGE}).headers
            assert named.get_list("access-control-allow-origin") == ["https://only.test"]
            assert "access-control-expose-headers" not in named
    written = "".join(file.read_text() for file in tmp_path.rglob("*.jsonl"))
    assert written
    assert "expose-headers" not in written


# What other clients sent

SHOWN = (("GET", ""), ("GET", "/input_items"), ("DELETE", ""))


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.test"}, {"origin": "null"}, {"host": "evil.test"}]
)
def test_a_foreign_page_reads_no_answer_of_another_client(serve, headers):
    """It can make the same answer, and so knows the id, which is the same on every server."""
    served = serve(SCENARIOS, strict=False)
    body = {"model": "m", "input": "hello, this is secret"}
    for status in (429, 200):
        made = served.http.post("/v1/responses", json=body)
        assert made.status_code == status
    path = f"/v1/responses/{made.json()['id']}"
    for method, rest in SHOWN:
        answer = served.http.request(method, path + rest, headers=headers)
        assert answer.status_code == 403, answer.text
        assert "secret" not in answer.text
        assert "Look-ups of answers do not answer to" in answer.json()["error"]["message"]
    for method, rest in SHOWN:  # the client itself, and so nothing was deleted
        assert served.http.request(method, path + rest).status_code == 200


def test_a_foreign_page_reads_no_object_of_another_client(serve):
    """It may make objects, and see and change none."""
    served = serve(SCENARIOS, fallback=True)
    id = served.http.post("/v1/conversations", headers={"origin": PAGE}, json={}).json()["id"]
    for method, path in (("GET", id), ("POST", id), ("DELETE", id), ("GET", f"{id}/items")):
        place, sent = f"/v1/conversations/{path}", {"json": {}} if method == "POST" else {}
        answer = served.http.request(method, place, headers={"origin": PAGE}, **sent)
        assert answer.status_code == 403, answer.text
        assert "Look-ups of objects do not answer to" in answer.json()["error"]["message"]
    assert served.http.get(f"/v1/conversations/{id}").status_code == 200


def test_a_page_that_is_named_reads_answers(serve):
    """A page that is the client itself is named by --allow-origin."""
    served = serve(SCENARIOS, allowed_origins=(PAGE,))
    answer = served.http.get("/v1/responses/resp_none", headers={"origin": PAGE})
    assert answer.status_code == 404
    assert_readable(answer)


# The control routes


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": PAGE}, 200),
        ({"origin": "http://localhost:3001"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "https://localhost:3000"}, 403),
        ({"origin": "http://LOCALHOST:3000"}, 403),
        ({"origin": "http://localhost:3000.evil.test"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": ""}, 403),
        ({"origin": PAGE, "host": "evil.test"}, 403),
        ({"host": "[::1"}, 403),
        ({}, 200),
    ],
)
def test_control_routes_answer_only_to_origins_that_are_named(serve, headers, status):
    """Origins are compared exactly; another port of this machine is another origin."""
    served = serve(SCENARIOS, allowed_origins=(PAGE,))
    answer = served.http.get("/_mockllm/journal", headers=headers)
    assert answer.status_code == status
    named = headers.get("origin") == PAGE
    assert answer.headers.get("access-control-allow-origin") == (PAGE if named else None)
    assert answer.headers["vary"] == "origin"


FETCHED = (
    ({"sec-fetch-site": "cross-site"}, 403),  # an image, a script, a form that is sent with GET
    ({"sec-fetch-site": "same-site"}, 403),
    ({"sec-fetch-site": "anything"}, 403),
    ({"sec-fetch-site": "cross-site", "origin": "https://evil.test"}, 403),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
    ({"sec-fetch-site": "same-site", "origin": PAGE}, 200),
    ({"sec-fetch-site": "same-origin"}, 200),
    ({"sec-fetch-site": "none"}, 200),  # the user typed the address
    ({}, 200),
)
"""What browsers say of a request, https://www.w3.org/TR/fetch-metadata/."""


@pytest.mark.parametrize(("headers", "status"), FETCHED)
def test_control_routes_look_at_what_browsers_say(serve, headers, status):
    """Also where there is no `Origin`; a page reads nothing and changes nothing."""
    served = serve(SCENARIOS, allowed_origins=(PAGE,))
    for method, path in (
        ("GET", "journal"),
        ("GET", "scenarios"),
        ("GET", "verify"),
        ("GET", "ui/live"),
        ("POST", "sessions"),
        ("DELETE", "sessions/default"),
    ):
        answer = served.http.request(method, f"/_mockllm/{path}", headers=headers)
        assert (answer.status_code == 403) == (status == 403), path
    assert served.http.get("/_mockllm/health", headers=headers).status_code == 200


def test_a_link_leads_to_the_live_page(serve):
    """What it shows is for the user; a frame of another page shows it to none."""
    served = serve(SCENARIOS, page=live_page)
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    for kind, path, status in (
        ("document", "ui", 200),
        ("iframe", "ui", 403),
        ("document", "journal", 403),
    ):
        headers = {**link, "sec-fetch-dest": kind}
        assert served.http.get(f"/_mockllm/{path}", headers=headers).status_code == status
    assert served.http.post("/_mockllm/ui", headers=headers).status_code == 403


@pytest.mark.parametrize("mode", ["add", "new_episodes"])
@pytest.mark.parametrize(("headers", "status"), FETCHED)
def test_a_recorder_asks_no_service_for_a_page(tmp_path, mode, headers, status):
    """Nothing is sent, whatever is asked: a stream, a model, an unknown path, a WebSocket."""

    async def script(request, wire):
        await wire.body("{}")

    upgrade = {"connection": "upgrade", "upgrade": "websocket"}
    asked = (
        ("POST", CHAT, {}),
        ("GET", "/v1/models", {}),
        ("GET", "/v1/nothing", {}),
        ("GET", "/", {}),
        ("GET", "/v1/realtime", upgrade),
    )
    with OddUpstream(script) as upstream:
        record = RecordOptions(tmp_path, {"chat": upstream.url}, mode)
        options = ServerOptions(record=record, allowed_origins=(PAGE,), grace=0)
        with ServerThread((), options) as recorder:
            for method, path, more in asked:
                sent = (
                    {"json": first_body(PROTOCOLS["chat"], "m", "hi")} if method == "POST" else {}
                )
                url = recorder.url + path
                answer = httpx.request(
                    method, url, headers={**headers, **more}, timeout=GIVE_UP, **sent
                )
                assert answer.status_code == status, path
        assert len(upstream.requests) == (len(asked) if status == 200 else 0)


def test_a_page_of_another_port_is_foreign(serve):
    """Without --allow-origin, no other port of this machine may use the control routes."""
    served = serve(SCENARIOS)
    for method, path in (("GET", "journal"), ("POST", "sessions"), ("OPTIONS", "sessions")):
        origin = {"origin": "http://127.0.0.1:3000"}
        answer = served.http.request(method, f"/_mockllm/{path}", headers=origin)
        assert answer.status_code == 403
        assert "--allow-origin http://127.0.0.1:3000" in answer.json()["error"]["message"]
        assert "access-control-allow-origin" not in answer.headers
    assert served.http.get("/_mockllm/sessions").json()["sessions"] == []
    own = {"origin": served.url}
    assert served.http.post("/_mockllm/sessions", headers=own).status_code == 201


def test_a_page_that_is_named_may_do_all(serve):
    """It gets an answer to its preflight, makes and deletes sessions, and reads errors."""
    served = serve(SCENARIOS, allowed_origins=(PAGE, "https://b.test"))
    headers = {**PREFLIGHT, "access-control-request-headers": "content-type"}
    preflight = served.http.options("/_mockllm/sessions/x", headers=headers)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert preflight.headers["access-control-allow-headers"] == "content-type"
    assert "DELETE" in preflight.headers["access-control-allow-methods"]
    for method, path, status in (
        ("POST", "sessions", 201),
        ("DELETE", "sessions/none", 404),
        ("GET", "nothing", 404),
        ("GET", "verify?depth=x", 404),
    ):
        answer = served.http.request(method, f"/_mockllm/{path}", headers={"origin": PAGE})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        ("*", "name each origin"),
        ("null", "name each origin"),
        ("http://localhost:80", "did you mean http://localhost?"),
        ("https://App.test:443/", "did you mean https://app.test?"),
        ("http://localhost:3000/", "did you mean http://localhost:3000?"),
        ("http://user@a.test", "did you mean http://a.test?"),
        ("localhost:3000", "write http://localhost:3000"),
        ("http://*.a.test", "write http://localhost:3000"),
        ("", "write http://localhost:3000"),
    ],
)
def test_what_is_no_origin_is_refused_at_the_start(origin, advice):
    """An origin that no browser sends would never match, so it is an error."""
    with pytest.raises(UsageError) as caught:
        check_origin(origin)
    assert advice in str(caught.value)
    thread = ServerThread((), ServerOptions(allowed_origins=(origin,)))
    with pytest.raises(UsageError), thread:
        pass


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "https://a.test", "http://[::1]:8000", "chrome-extension://abc"],
)
def test_origins_of_browsers_are_accepted(origin):
    """Every scheme has origins, and the host may be an IPv6 address."""
    check_origin(origin)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("mock.test:8080", "http://mock.test:8080", 200),
        ("127.0.0.1:8080", "https://mock.test", 200),  # a proxy that has the usual port
        ("mock.test:8080", "http://mock.test:3000", 403),
        ("localhost:8080", "http://localhost:3000", 403),
        ("localhost:8080", "http://localhost", 403),
        ("127.0.0.1:8080", "http://127.0.0.1", 403),
    ],
)
def test_another_port_of_an_allowed_host_is_another_origin(serve, host, origin, status):
    """A name of --allow-host lets in the pages of a proxy with this name, and no other server of
    the same machine, not even where the name is `localhost`."""
    served = serve(SCENARIOS, allowed_hosts=("mock.test", "localhost", "127.0.0.1"))
    headers = {"host": host, "origin": origin}
    assert served.http.get("/_mockllm/scenarios", headers=headers).status_code == status
