"""The server over HTTP: delivery, sessions, journal, control routes, refusals."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import httpx
import pytest

from mockllm.wire.framing.sse import decode
from tests.timeouts import GIVE_UP

WEATHER = """
scenario: weather
match: {user: weather}
turns:
  - reply: {tool: get_weather, id: call_w, arguments: {city: Paris}, split: 4}
  - request: {results: {call_w: {contains: rain}}}
    reply: {text: Take an umbrella., split: words}
"""
LIMITED = """
scenario: limited
match: {user: busy}
turns:
  - attempts: [{http: 429, retry_after: 2s}, {http: 503, headers: {x-extra: "1"}}]
    reply: {text: fine}
"""
SLOW = """
scenario: slow
match: {user: slow}
turns:
  - reply: {text: abcdefghij, split: chars}
    timing: {ttft: 20ms, every: 10ms}
"""
ENDLESS = """
scenario: stuck
match: {user: stuck}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
"""


def chat(*messages, **fields):
    """A Chat Completions body."""
    converted = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return {"model": "gpt-4o", "messages": converted, **fields}


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_w",
            "type": "function",
            "function": {"name": "get_weather", "arguments": "{}"},
        }
    ],
}


def result(content):
    return {"role": "tool", "tool_call_id": "call_w", "content": content}


def chunks(url, body, path="/v1/chat/completions"):
    """The HTTP chunks that a client receives."""
    with httpx.stream("POST", url + path, json=body, timeout=GIVE_UP) as answer:
        return list(answer.iter_raw())


def raw_exchange(url, request):
    """The bytes of an answer on a connection of its own, until the server closes it."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(request)
        data = b""
        while part := sock.recv(65536):
            data += part
    return data


def http_chunks(data):
    """The chunks of a chunked body."""
    out = []
    while True:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        if not count:
            return out
        out.append(data[:count])
        data = data[count + 2 :]


def test_one_http_chunk_for_each_event(serve):
    """An instant answer is sent in one write and has an HTTP chunk for each event."""
    body = json.dumps(chat("weather", stream=True)).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    head, _, rest = raw_exchange(serve(WEATHER).url, request).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in head
    parts = http_chunks(rest)
    assert len(parts) == len(decode(b"".join(parts)))
    assert parts[-1] == b"data: [DONE]\n\n"


def test_http_1_0_gets_no_chunk_framing(serve):
    """The body of an HTTP/1.0 answer ends with the connection."""
    body = json.dumps(chat("weather", stream=True)).encode()
    request = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    head, _, rest = raw_exchange(serve(WEATHER).url, request).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert rest.startswith(b"data: {")
    assert rest.endswith(b"data: [DONE]\n\n")


@pytest.mark.slow
def test_every_way_of_delivery_sends_the_same_bytes(serve):
    """Timed and instant replay send the same bytes at different times."""
    text = SLOW.replace("10ms", "1ms")
    plain = b"".join(chunks(serve(text, speed=0).url, chat("slow", stream=True)))
    assert b"".join(chunks(serve(text).url, chat("slow", stream=True))) == plain


def test_segments_cut_events_anywhere(serve):
    """`wire.segments` sends writes of that many bytes, which cut events too."""
    text = WEATHER.replace("split: 4}", "split: 4}\n    wire: {segments: 7}", 1)
    whole = b"".join(chunks(serve(WEATHER).url, chat("weather", stream=True)))
    parts = chunks(serve(text).url, chat("weather", stream=True))
    assert b"".join(parts) == whole
    assert len(parts) > len(whole) // 14


def test_wire_options_change_the_framing_only(serve):
    """CRLF, a byte order mark and comments do not change the events."""
    text = WEATHER.replace(
        "split: 4}",
        "split: 4}\n    wire: {line_end: crlf, bom: true, comments: {every: 2, text: x}}",
        1,
    )
    odd = b"".join(chunks(serve(text).url, chat("weather", stream=True)))
    plain = b"".join(chunks(serve(WEATHER).url, chat("weather", stream=True)))
    assert odd.startswith(b"\xef\xbb\xbfdata: {")
    assert odd.count(b": x\r\n\r\n") == len(decode(plain)) // 2
    assert [f for f in decode(odd) if f.data is not None] == decode(plain)


def test_a_conversation_is_played_to_its_end(serve):
    """The second turn answers the results, with a body of the API; a third request is a 404."""
    served = serve(WEATHER)
    answer = served.http.post(
        "/v1/chat/completions", json=chat("weather", CALLED, result("It will rain."))
    )
    assert answer.json()["choices"][0]["message"]["content"] == "Take an umbrella."
    past = served.http.post(
        "/v1/chat/completions",
        json=chat("weather", CALLED, result("rain"), {"role": "assistant", "content": "x"}),
    )
    assert past.status_code == 404
    assert past.json()["error"]["code"] == "no_turn"
    assert [entry["outcome"] for entry in served.journal()] == ["played", "unmatched"]


def test_failed_expectations_are_reported(serve):
    """The error and the journal describe what the client should have sent."""
    served = serve(WEATHER)
    answer = served.http.post("/v1/chat/completions", json=chat("weather", CALLED, result("sun")))
    assert answer.status_code == 400
    assert "the result of call 'call_w' must contain 'rain', got 'sun'" in answer.text
    entry = served.journal()[0]
    assert (entry["outcome"], entry["scenario"], entry["turn"]) == ("invalid", "weather", 1)
    assert "must contain 'rain'" in entry["problems"][0]


def test_attempts_fail_first(serve):
    """The attempts of a turn fail as written, with the headers that clients read; then its reply
    stays."""
    served = serve(LIMITED)
    answers = [served.http.post("/v1/chat/completions", json=chat("busy")) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [429, 503, 200, 200]
    assert answers[0].headers["retry-after"] == "2"
    assert answers[0].headers["x-ratelimit-remaining-requests"] == "0"
    assert answers[1].headers["x-extra"] == "1"
    assert [e["attempt"] for e in served.journal()] == [1, 2, 3, 4]
    assert [e["outcome"] for e in served.journal()] == ["error", "error", "played", "played"]


def test_sessions_are_isolated(serve):
    """The attempts and the journal of one session do not affect another."""
    served = serve(LIMITED)
    body = chat("busy")
    first = served.http.post("/s/one/v1/chat/completions", json=body)
    second = served.http.post(
        "/v1/chat/completions", json=body, headers={"x-mockllm-session": "two"}
    )
    again = served.http.post("/s/one/v1/chat/completions", json=body)
    assert [first.status_code, second.status_code, again.status_code] == [429, 429, 503]
    assert [len(served.journal(name)) for name in ("one", "two")] == [2, 1]
    assert served.http.get("/_mockllm/sessions/one").json()["requests"] == 2
    assert served.http.delete("/_mockllm/sessions/one").json() == {
        "session": "one",
        "deleted": True,
    }
    assert served.http.get("/_mockllm/sessions/one").status_code == 404


def test_a_created_session_has_base_urls(serve):
    """Creating a session returns the base URLs; the name is optional, and a bad one is a 400."""
    served = serve(WEATHER)
    created = served.http.post("/_mockllm/sessions", json={"session": "mine"})
    assert created.status_code == 201
    assert created.json()["base_urls"]["chat"] == f"{served.url}/s/mine/v1"
    other = served.http.post("/_mockllm/sessions").json()["session"]
    assert other != "mine"
    bad = served.http.post("/_mockllm/sessions", json={"session": "no/slash"})
    assert bad.status_code == 400
    assert "session must be a name" in bad.text


def test_the_journal_masks_credentials(serve):
    """Credentials in headers and in the query are not in the journal."""
    served = serve(WEATHER)
    served.http.post(
        "/v1/chat/completions?api-key=sk-in-query",
        json=chat("weather"),
        headers={
            "authorization": "Bearer sk-secret",
            "x-api-key": "sk-other",
            "cookie": "id=sk-third",
        },
    )
    journal = served.http.get("/_mockllm/journal").text
    assert "sk-" not in journal
    entry = served.journal()[0]
    assert entry["headers"]["authorization"] == "***"
    assert json.loads(entry["body"]) == chat("weather")
    assert entry["bytes_sent"] > 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:1234"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "friend.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://friend.example"}, 200),
        ({"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"}, 200),
    ],
)
def test_control_routes_refuse_foreign_hosts_and_origins(serve, headers, status):
    """A page in a browser cannot read the journal, under any name of this machine."""
    served = serve(WEATHER, allowed_hosts=("friend.example",))
    assert served.http.get("/_mockllm/journal", headers=headers).status_code == status


def test_health_and_scenarios(serve):
    """The control routes list the scenarios; an unknown route lists the routes."""
    served = serve(WEATHER + "---" + LIMITED)
    assert served.http.get("/_mockllm/health").json()["scenarios"] == 2
    listed = served.http.get("/_mockllm/scenarios").json()["scenarios"]
    assert [(s["name"], s["turns"]) for s in listed] == [("weather", 2), ("limited", 1)]
    unknown = served.http.get("/_mockllm/nothing")
    assert unknown.status_code == 404
    assert "GET health" in unknown.text


def test_refusals_have_the_shape_of_the_api(serve):
    """An unknown path, a wrong method and a body that is no JSON object are refused."""
    served = serve(WEATHER)
    unknown = served.http.post("/v1/chat/complete", json={})
    assert unknown.status_code == 404
    assert "POST /v1/chat/completions" in unknown.json()["error"]["message"]
    wrong = served.http.get("/v1/completions")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    broken = served.http.post("/v1/responses", content=b'{"model": ')
    assert broken.status_code == 400
    assert "line 1 column 11" in broken.json()["error"]["message"]
    deep = served.http.post("/v1/responses", content=b"[" * 100_000)
    assert deep.status_code == 400
    binary = served.http.post("/v1/responses", content=b'{"a": "\xff"}')
    assert "not UTF-8" in binary.json()["error"]["message"]
    listed = served.http.post("/v1/responses", content=b"[]")
    assert listed.status_code == 400
    assert {e["outcome"] for e in served.journal()[1:]} == {"invalid"}


def test_a_body_beyond_the_limit_is_refused(serve):
    """It is refused with and without a Content-Length."""
    served = serve(WEATHER, max_body=10_000)
    fits = served.http.post("/v1/chat/completions", json=chat("weather " + "x" * 9_000))
    assert fits.status_code == 200
    for content in (b"x" * 20_000, iter([b"x" * 1_000] * 20)):
        answer = served.http.post("/v1/chat/completions", content=content)
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "request_too_large"


def test_a_body_of_just_the_limit_is_read(serve):
    """The limit itself is allowed and one byte more is not, however the body is sent."""
    body = json.dumps(chat("weather")).encode()
    served = serve(WEATHER, max_body=len(body))
    for more, status in ((b"", 200), (b" ", 413)):
        for content in (body + more, iter([body, more] if more else [body])):
            answer = served.http.post("/v1/chat/completions", content=content)
            assert answer.status_code == status


def test_a_client_that_waits_for_100_continue_is_answered(serve):
    """A client may wait for `100 Continue` before it sends the body, as curl does for large
    ones."""
    body = json.dumps(chat("weather")).encode()
    url = serve(WEATHER).url
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_many_requests_on_one_connection(serve):
    """The connection stays open between streamed, plain and refused answers."""
    served = serve(WEATHER + "---" + LIMITED)
    bodies = [chat("weather", stream=True), chat("weather"), chat("nothing"), chat("busy")]
    statuses = [
        served.http.post("/v1/chat/completions", json=body).status_code for body in bodies * 3
    ]
    assert statuses == [200, 200, 404, 429, 200, 200, 404, 503, 200, 200, 404, 200]


def test_pipelined_requests_are_answered_in_order(serve):
    """Two requests in one segment get two answers."""
    body = json.dumps(chat("weather")).encode()
    one = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n%b"
    request = one % (b"", len(body), body) + one % (b"Connection: close\r\n", len(body), body)
    assert raw_exchange(serve(WEATHER).url, request).count(b"HTTP/1.1 200 OK") == 2


def test_timed_replay_keeps_the_order_and_takes_its_time(serve):
    """No event is sent before it is due."""
    import time

    served = serve(SLOW)
    began = time.monotonic()
    parts = chunks(served.url, chat("slow", stream=True))
    assert time.monotonic() - began >= 0.110
    assert b"".join(parts).endswith(b"data: [DONE]\n\n")


def test_a_client_that_goes_away_frees_everything(serve):
    """A stream in a pause ends when its client leaves, and the journal reports it."""
    gone = threading.Event()
    served = serve(ENDLESS, log=lambda exchange: gone.set())
    with served.http.stream(
        "POST", "/v1/chat/completions", json=chat("stuck", stream=True)
    ) as answer:
        assert b"first" in b"".join(islice(answer.iter_raw(), 2))
    assert gone.wait(GIVE_UP)
    entry = served.journal()[0]
    assert entry["client_gone"]
    assert 0 < entry["bytes_sent"] < 2_000


def test_stopping_lets_streams_finish_within_the_grace(serve):
    """A stream that ends within the grace is whole; another one is cut."""
    from mockllm import ServerOptions, ServerThread, loads

    def read(url, name, begun):
        with httpx.stream(
            "POST", url + "/v1/chat/completions", json=chat(name, stream=True), timeout=GIVE_UP
        ) as answer:
            parts = answer.iter_raw()
            first = next(parts)
            begun.set()
            return first + b"".join(parts)

    def stopped_after_the_first_event(scenario, name, grace):
        begun = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            with ServerThread(loads(scenario), ServerOptions(grace=grace)) as server:
                reading = pool.submit(read, server.url, name, begun)
                assert begun.wait(GIVE_UP)
            return reading.result()

    whole = stopped_after_the_first_event(SLOW, "slow", grace=GIVE_UP)
    assert whole.endswith(b"data: [DONE]\n\n")
    with pytest.raises(httpx.RemoteProtocolError):
        stopped_after_the_first_event(ENDLESS, "stuck", grace=0.05)


def test_a_port_in_use_is_an_error_where_the_server_is_started(serve):
    """The error is raised in the thread that starts the server."""
    from mockllm import ServerOptions, ServerThread

    port = int(serve(WEATHER).url.rsplit(":", 1)[1])
    with pytest.raises(OSError, match="address already in use"):
        ServerThread([], ServerOptions(port=port)).__enter__()


def test_a_reload_replaces_the_scenarios(serve):
    """Sessions go on; the next request is matched against the new scenarios."""
    from mockllm import loads

    served = serve(WEATHER)
    assert served.http.post("/v1/chat/completions", json=chat("weather")).status_code == 200
    served.server.reload(loads(LIMITED))
    assert served.http.post("/v1/chat/completions", json=chat("weather")).status_code == 404
    assert served.http.post("/v1/chat/completions", json=chat("busy")).status_code == 429
    assert len(served.journal()) == 3


def test_a_page_in_a_browser_may_call_the_apis(serve):
    """Preflights and answers allow any origin on the APIs' paths."""
    served = serve(WEATHER)
    preflight = served.http.request(
        "OPTIONS",
        "/v1/chat/completions",
        headers={"origin": "https://app.example", "access-control-request-method": "POST"},
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-headers"] == "*"
    answer = served.http.post("/v1/chat/completions", json=chat("weather"))
    assert answer.headers["access-control-allow-origin"] == "*"


def test_models_are_listed(serve):
    """Scenarios are listed as models. Where a scenario plays with any model, a lookup of any name
    succeeds; otherwise an unknown one is a 404."""
    served = serve(WEATHER)
    listed = served.http.get("/v1/models").json()
    assert [model["id"] for model in listed["data"]] == ["mock/weather"]
    assert served.http.get("/v1/models/gpt-4o").json()["id"] == "gpt-4o"
    only = serve("scenario: s\nmatch: {model: house}\nturns: [{reply: {text: x}}]")
    assert only.http.get("/v1/models/house").status_code == 200
    missing = only.http.get("/v1/models/gpt-4o")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


def test_the_fallback_answers_anything(serve):
    """With `fallback: auto` a request that nothing matches gets an answer that is built from the
    request."""
    served = serve(WEATHER, fallback=True)
    answer = served.http.post("/v1/chat/completions", json=chat("say this"))
    assert answer.json()["choices"][0]["message"]["content"] == "say this"
    tool = {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"n": {"type": "integer", "minimum": 5}},
                "required": ["n"],
            },
        },
    }
    called = served.http.post(
        "/v1/chat/completions", json=chat("go", tools=[tool], tool_choice="required")
    ).json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (called["name"], json.loads(called["arguments"])) == ("f", {"n": 5})


def test_lenient_plays_requests_that_the_api_refuses(serve):
    """A call without its result is an error, unless the server is lenient."""
    body = chat("weather", CALLED, {"role": "user", "content": "well?"})
    assert serve(WEATHER).http.post("/v1/chat/completions", json=body).status_code == 400
    text = WEATHER.replace(
        "  - request: {results: {call_w: {contains: rain}}}\n    reply", "  - reply"
    )
    answer = serve(text, strict=False).http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200


def test_the_same_request_gives_the_same_bytes_on_another_server(serve):
    """No part of an answer comes from a clock, a counter or the process."""
    for body in (chat("weather", stream=True), chat("weather")):
        answers = [serve(WEATHER).http.post("/v1/chat/completions", json=body) for _ in range(2)]
        assert answers[0].content == answers[1].content
        assert answers[0].headers == answers[1].headers


def test_a_name_in_a_path_may_hold_a_quoted_slash(serve):
    """SDKs percent-encode the slash of `mock/weather`; the name is one path segment."""
    served = serve(WEATHER)
    assert served.http.get("/v1/models/mock%2Fweather").json()["id"] == "mock/weather"


def test_a_stored_response_is_not_streamed_again(serve):
    """Requesting its stream is refused: an empty stream would look like the answer."""
    served = serve(WEATHER)
    response = served.http.post("/v1/responses", json={"model": "m", "input": "weather"}).json()
    again = served.http.get(f"/v1/responses/{response['id']}", params={"stream": "true"})
    assert (again.status_code, again.json()["error"]["param"]) == (400, "stream")
    assert served.http.get(f"/v1/responses/{response['id']}").json() == response


def test_an_error_of_a_streamed_array_is_a_list(serve):
    """Gemini's stream without `alt=sse` is an array, and so is its error."""
    served = serve(LIMITED)
    body = {"contents": [{"role": "user", "parts": [{"text": "busy"}]}]}
    key = {"x-goog-api-key": "k"}
    path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    array = served.http.post(path, json=body, headers=key)
    assert (array.status_code, array.json()[0]["error"]["code"]) == (429, 429)
    sse = served.http.post(f"{path}?alt=sse", json=body, headers=key)
    assert (sse.status_code, sse.json()["error"]["code"]) == (503, 503)
    played = served.http.post(path, json=body, headers=key)
    assert played.json()[-1]["candidates"][0]["finishReason"] == "STOP"


def test_credentials_and_versions_are_required(serve):
    """Each API refuses a request without its credentials or version header; any value is
    accepted."""
    served = serve(WEATHER)
    message = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "weather"}]}
    no_key = served.http.post("/v1/messages", json=message, headers={"anthropic-version": "x"})
    assert (no_key.status_code, no_key.json()["error"]["type"]) == (401, "authentication_error")
    no_version = served.http.post("/v1/messages", json=message, headers={"x-api-key": "k"})
    assert no_version.status_code == 400
    for key in ({"x-api-key": "k"}, {"authorization": "Bearer k"}):
        headers = {"anthropic-version": "2023-06-01", **key}
        assert served.http.post("/v1/messages", json=message, headers=headers).status_code == 200
    content = {"contents": [{"role": "user", "parts": [{"text": "weather"}]}]}
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    assert served.http.post(path, json=content).status_code in (401, 403)
    assert served.http.post(f"{path}?key=AIzaSecret", json=content).status_code == 200
    assert "AIzaSecret" not in served.http.get("/_mockllm/journal").text


def test_a_model_list_has_the_shape_of_the_requested_api(serve):
    """OpenAI, Anthropic and Gemini share the path."""
    served = serve(WEATHER)
    assert served.http.get("/v1/models").json()["object"] == "list"
    anthropic = {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert served.http.get("/v1/models", headers=anthropic).json()["has_more"] is False
    gemini = served.http.get("/v1/models", headers={"x-goog-api-key": "k"}).json()
    assert gemini["models"][0]["name"].startswith("models/")


def test_the_names_in_a_query_are_part_of_the_cache_key(serve):
    """`?key=sse` is not `?alt=sse`, although body and value are the same."""
    served = serve(WEATHER)
    body = {"contents": [{"role": "user", "parts": [{"text": "weather"}]}]}
    path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    headers = {"x-goog-api-key": "k"}
    events = served.http.post(f"{path}?alt=sse", json=body, headers=headers)
    array = served.http.post(f"{path}?key=sse", json=body, headers=headers)
    assert events.text.startswith("data: ")
    assert array.text.startswith("[")
