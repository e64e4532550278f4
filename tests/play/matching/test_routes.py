"""Which scenario answers a route that calls no model, and which of its turns."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import NoMatchError
from mockllm.play.matching.fingerprint import route_digest
from mockllm.play.matching.route_selection import RouteIndex, RouteRequest
from mockllm.play.replay.loading import loads
from tests.cases import for_all

JSON = {"content-type": "application/json"}


def index(*routes: str) -> RouteIndex:
    """The index of scenarios a, b, ... with these routes and further lines."""
    texts = [
        f"scenario: {name}\nroute: {route}\nturns: [{{answer: {{}}}}]\n"
        for name, route in zip("abcdefgh", routes, strict=False)
    ]
    return RouteIndex(loads("---\n".join(texts)))


def request(line: str, body: object = None, **headers: str) -> RouteRequest:
    """The request for `METHOD /path?query` with a JSON body."""
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RouteRequest(method, path, query, {**JSON, **named}, data)


def chosen(found: RouteIndex, *args: object, **headers: str) -> list[tuple[str, int]]:
    """The names and indices of the turns that answer a request."""
    turns = found.select(request(*args, **headers))  # type: ignore[arg-type]
    return [(scenario.name, turn) for scenario, turn in turns]


@for_all(
    ("route", "sent", "fits"),
    [
        ("POST /v1/embeddings", "POST /v1/embeddings", True),
        ("POST /v1/embeddings", "GET /v1/embeddings", False),
        ("POST /v1/embeddings", "POST /openai/v1/embeddings", True),
        ("POST /v1/embeddings", "POST /openai/deployments/x/v1/embeddings", True),
        ("POST /v1/embeddings", "POST /notv1/embeddings", False),
        ("POST /v1/embeddings", "POST /v1/embeddings/more", False),
        ("POST /api/v1/embeddings", "POST /v1/embeddings", True),
        ("POST /api/v1/embeddings", "POST /1/embeddings", False),
        ("GET /v1/files/{id}", "GET /v1/files/f1", True),
        ("GET /v1/files/{id}", "GET /openai/v1/files/f1", True),
        ("GET /v1/files/{id}", "GET /v1/files/f1/content", False),
        ("GET /v1/files/{id}", "GET /v1/files/", False),
        ("GET /v1/files/{id}", "GET /f1", False),
        ("GET /v1/files/*", "GET /v1/files/f1/content", True),
        ("POST /v1beta/models/{model}:predict", "POST /v1beta/models/m-1:predict", True),
        ("POST /v1beta/models/{model}:predict", "POST /v1beta/models/m-1%3Apredict", True),
        ("GET /v1/files/a%2Fb", "GET /v1/files/a%2fb", True),
        ("GET /v1/files/a%2Fb", "GET /v1/files/a/b", False),
        ("GET /{tenant}/list", "GET /x/y/list", False),
        ("GET /*", "GET /any/thing", True),
        ("GET /v1/audio", "HEAD /v1/audio", True),
        ("POST /v1/audio", "HEAD /v1/audio", False),
    ],
)
def test_paths(route: str, sent: str, fits: bool) -> None:
    """The end of a path counts, `{name}` is one segment, `*` is any text, and GET answers HEAD."""
    assert bool(chosen(index(route), sent)) is fits


@given(
    st.lists(st.from_regex(r"\A[a-r0-9]{1,3}\Z"), min_size=1, max_size=4),
    st.lists(st.from_regex(r"\A[a-r0-9]{1,3}\Z"), max_size=3),
)
def test_any_prefix_fits(route: list[str], prefix: list[str]) -> None:
    """A route answers its path below any prefix, and the path without its own first segments."""
    path = "/" + "/".join(route)
    found = index(f"GET {path}")
    assert chosen(found, f"GET /{'/'.join([*prefix, *route])}") == [("a", 0)]
    assert chosen(found, f"GET /{'/'.join(route[-1:])}") == [("a", 0)]


def test_the_best_fit_answers() -> None:
    """The whole path goes before its end, a plain path before names, names before `*`."""
    found = index(
        "GET /*",
        "GET /v1/{kind}/{id}",
        "GET /v1/files/{id}",
        "GET /v1/files/f1",
        "GET /x/v1/files/f1",
        "GET /files/f1",
    )
    assert chosen(found, "GET /v1/files/f1") == [("d", 0)]
    assert chosen(found, "GET /v1/files/f2") == [("c", 0)]
    assert chosen(found, "GET /v1/images/f2") == [("b", 0)]
    assert chosen(found, "GET /v1/images") == [("a", 0)]
    assert chosen(found, "GET /x/v1/files/f1") == [("e", 0)]


CONDITIONS = """
scenario: plain
route: POST /x
turns: [{answer: {}}]
---
scenario: hello
route: POST /x
match: {body: {input: hello}}
turns: [{answer: {}}, {answer: {}}]
---
scenario: paged
route: POST /x
match: {body: {input: hello}, query: {page: {regex: '^[0-9]+$'}}, headers: {X-Team: red}}
turns: [{answer: {}}]
---
scenario: by-model
route: POST /{model}/y
match: {model: text-*}
turns: [{answer: {}}]
---
scenario: rest
route: POST /x
match: any
turns: [{answer: {}}]
"""


def test_the_most_conditions_answer() -> None:
    """Of the scenarios whose conditions hold, the one with the most answers."""
    found = RouteIndex(loads(CONDITIONS))
    assert chosen(found, "POST /x", {"input": "bye"}) == [("plain", 0)]
    assert chosen(found, "POST /x?page=2", {"input": "hello"}) == [("hello", 0), ("hello", 1)]
    assert chosen(found, "POST /x?page=2", {"input": "hello"}, x_team="red") == [("paged", 0)]
    assert chosen(found, "POST /x?page=b", {"input": "hello"}, x_team="red")[0][0] == "hello"


def test_conditions_of_a_route_are_combined() -> None:
    """`any`, `all` and `not` have the conditions of routes, and are one condition each."""
    route = "POST /v1/embeddings"
    found = index(
        route,
        f"{route}\nmatch: {{any: [{{model: large}}, {{query: {{size: big}}}}], "
        "not: {headers: {x-debug: ''}}}",
    )
    assert chosen(found, route, {"model": "large"}) == [("b", 0)]
    assert chosen(found, f"{route}?size=big", {}) == [("b", 0)]
    assert chosen(found, route, {"model": "small"}) == [("a", 0)]
    assert chosen(found, route, {"model": "large"}, x_debug="1") == [("a", 0)]
    explained = found.explain(request(route, {"model": "large"}, x_debug="1"))
    assert explained == (
        "b: match.not: this must not hold, but it does: headers.x-debug '', got '1'"
    )


def test_the_model_of_a_route() -> None:
    """`match.model` is compared with the model in the body, or else in the path."""
    found = RouteIndex(loads(CONDITIONS))
    assert chosen(found, "POST /text-1/y") == [("by-model", 0)]
    assert chosen(found, "POST /other/y") == []
    assert chosen(found, "POST /other/y", {"model": "text-2"}) == [("by-model", 0)]
    assert chosen(found, "POST /text-1/y", {"model": "other"}) == []


def test_equal_authored_scenarios_are_an_error() -> None:
    """Two authored scenarios with as many conditions are named, and none of them answers."""
    text = "scenario: {}\nroute: POST /x\nmatch: {{body: {{{}: 1}}}}\nturns: [{{answer: {{}}}}]\n"
    found = RouteIndex(loads(text.format("a", "p") + "---\n" + text.format("b", "q")))
    assert chosen(found, "POST /x", {"p": 1}) == [("a", 0)]
    with pytest.raises(NoMatchError, match="2 scenarios answer this route equally well: a, b"):
        chosen(found, "POST /x", {"p": 1, "q": 1})
    named = found.select(request("POST /x", {"p": 1, "q": 1}), "b")
    assert [(scenario.name, turn) for scenario, turn in named] == [("b", 0)]


def test_a_named_scenario_answers_its_route_only() -> None:
    """A name decides among the scenarios of the route, conditions aside. The name of another
    scenario, as a client sends it with every request, does not."""
    found = RouteIndex(loads(CONDITIONS))
    one = request("POST /x", {"input": "bye"})
    assert found.select(one, "paged")[0][0].name == "paged"
    assert found.select(one, "by-model")[0][0].name == "plain"
    assert found.select(one, "weather")[0][0].name == "plain"


def multipart(boundary: str, filename: str = "a.txt", data: bytes = b"one\r\ntwo") -> RouteRequest:
    """An upload of a file, with a field."""
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: text/plain\r\n\r\n"
    ).encode() + data + f"\r\n--{boundary}--\r\n".encode()  # fmt: skip
    kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
    return RouteRequest("POST", "/v1/files", "", kind, body)


@given(st.from_regex(r"\A[A-Za-z0-9]{1,40}\Z"))
def test_a_form_matches_by_its_parts(boundary: str) -> None:
    """`match.body` sees the fields and files of a multipart body, whatever its boundary is."""
    (scenario,) = loads(
        "scenario: a\nroute: POST /v1/files\nturns: [{answer: {}}]\n"
        "match: {body: {purpose: batch, "
        "file: {filename: a.txt, content_type: text/plain, size: 8}}}"
    )
    found = RouteIndex([scenario])
    assert found.select(multipart(boundary))
    assert not found.select(multipart(boundary, filename="b.txt"))
    assert not found.select(multipart(boundary, data=b"other"))


def test_a_form_in_the_url_encoding_matches_by_its_fields() -> None:
    """`match.body` sees the fields of a form; JSON that is declared as a form is JSON."""
    (scenario,) = loads("scenario: a\nroute: POST /x\nmatch: {body: {k: v}}\nturns: [{answer: {}}]")
    found = RouteIndex([scenario])
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert found.select(RouteRequest("POST", "/x", "", kind, b"k=v&x=1"))
    assert found.select(RouteRequest("POST", "/x", "", kind, b'{"k": "v"}'))
    assert not found.select(RouteRequest("POST", "/x", "", kind, b"k=w"))


def test_why_nothing_answers() -> None:
    """The explanation has the first failed condition of each scenario of the route, in one line."""
    found = RouteIndex(loads(CONDITIONS.partition("---")[2]))
    text = found.explain(request("POST /y/x", {"input": "bye"}))
    assert text == (
        "hello: match.body: body.input must be 'hello', got 'bye'; "
        "paged: match.headers: the header 'x-team' must be sent, but is not there"
    )
    binary = RouteRequest("POST", "/x", "", {"content-type": "image/png"}, b"\0")
    assert "the body must be JSON or a form, got 1 bytes, 'image/png'" in found.explain(binary)
    assert found.explain(request("POST /z")) == ""


# Recordings


def recording(name: str, sent: RouteRequest, order: int = 0, match: str = "") -> str:
    """A scenario that was recorded from a request."""
    digest = route_digest(sent.method, sent.path, sent.query, sent.content_type, sent.body)
    return (
        f"---\nscenario: {name}\nroute: {sent.method} {sent.path}\n{match}"
        f"turns: [{{answer: {{}}, recorded: {{file: {name}.jsonl, request: '{digest}', "
        f"order: {order}}}}}]\n"
    )


def test_the_recording_of_this_very_request_answers() -> None:
    """A recording is found by its own request, among others of the same route."""
    one, two = (request("POST /v1/embeddings", {"input": text}) for text in ("one", "two"))
    found = RouteIndex(loads(recording("a", one) + recording("b", two)))
    assert [s.name for s, _ in found.select(one)] == ["a"]
    assert [s.name for s, _ in found.select(two)] == ["b"]
    spaced = RouteRequest("POST", "/openai/v1/embeddings", "", JSON, b'{ "input" : "two" }')
    assert [s.name for s, _ in found.select(spaced)] == ["b"]


def test_equal_requests_are_played_in_recorded_order() -> None:
    """Several recordings of one request have the order of the recording, not of their names."""
    one = request("GET /v1/batches/b1")
    found = RouteIndex(
        loads(recording("b", one, 0) + recording("c", one, 2) + recording("a", one, 1))
    )
    assert [s.name for s, _ in found.select(one)] == ["b", "a", "c"]


def test_an_upload_is_found_with_another_boundary() -> None:
    """The digest of a multipart body does not depend on the boundary."""
    found = RouteIndex(
        loads(recording("a", multipart("xyz")) + recording("b", multipart("xyz", data=b"other")))
    )
    assert [s.name for s, _ in found.select(multipart("another"))] == ["a"]


def test_an_authored_scenario_with_more_conditions_goes_before_a_recording() -> None:
    """A condition that a person added decides; without one the recording of the request does."""
    one = request("POST /x", {"input": "one"})
    authored = "---\nscenario: own\nroute: POST /x\n{}turns: [{{answer: {{}}}}]\n"
    match = "match: {body: {input: one}}\n"
    plain = RouteIndex(loads(recording("a", one) + authored.format("")))
    assert [s.name for s, _ in plain.select(one)] == ["a"]
    narrowed = RouteIndex(loads(recording("a", one) + authored.format(match)))
    assert [s.name for s, _ in narrowed.select(one)] == ["own"]


def test_a_recording_whose_conditions_fail_does_not_answer() -> None:
    """The conditions of a recording hold for its own request, too."""
    one = request("POST /x", {"input": "one"})
    found = RouteIndex(loads(recording("a", one, match="match: {headers: {x-team: red}}\n")))
    assert found.select(one) == ()
