"""Whole imports: which exchanges are one scenario, what it is called, whether it is found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.batch import ImportResult, import_files
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.finding import not_found
from mockllm.record.recording.store.folder import Folder
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import visible_text
from tests.record.recording.exchanging import (
    JSON,
    answer,
    asks,
    calling,
    exchange,
    failure,
    model,
    responding,
    result,
    user,
)
from tests.serve.server.recording.odd_upstream import text_events

HELLO = [user("hello")]


def cassette(path: Path, *exchanges: Captured) -> Path:
    """A VCR cassette with these exchanges."""
    entries = [
        {
            "request": {
                "method": one.method,
                "uri": one.url,
                "headers": {name: [value] for name, value in one.request_headers},
                "body": one.request_body,
            },
            "response": {
                "status": {"code": one.status, "message": "x"},
                "headers": {name: [value] for name, value in one.headers},
                "body": {"string": one.body},
            },
        }
        for one in exchanges
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump({"interactions": entries, "version": 1}))
    return path


def imported(out: Path, *files: Path, **options: Any) -> list[ImportResult]:
    return import_files(files, Folder(out), **options)


def lost(results: list[ImportResult]) -> list[str]:
    return [f"{one.line.source}: {one.line.not_found}" for one in results if one.line.not_found]


def texts(scenario: Scenario) -> list[str]:
    return [visible_text(turn.reply) for turn in scenario.turns]


def files_in(folder: Path) -> dict[str, bytes]:
    """What whoever reads the folder finds; its lock is hidden."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "."}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_files_are_not_joined(tmp_path: Path, out: Path) -> None:
    """An error in one cassette is no earlier try of another one's answer, and a conversation of
    one is not continued by another, although the requests fit. `join` does both."""
    more = [*HELLO, model("hi"), user("more")]
    files = [
        cassette(tmp_path / "a.yaml", failure(HELLO)),
        cassette(tmp_path / "b.yaml", answer(HELLO, "hi")),
        cassette(tmp_path / "c.yaml", answer(more, "yes")),
    ]
    results = imported(out, *files)
    scenarios = {scenario.name: scenario for scenario in load(out)}
    assert list(scenarios) == ["a", "b", "c"]
    assert not any(turn.attempts for one in scenarios.values() for turn in one.turns)
    assert texts(scenarios["b"]) == ["hi"]
    assert not lost(results)
    joined = tmp_path / "joined"
    assert not lost(imported(joined, *files, join=True))
    (one,) = load(joined)
    assert (texts(one), len(one.turns[0].attempts)) == (["hi", "yes"], 1)


PATH_KEY = "sk-proj-Zt81mQ4xV7bN2cKp9RwLdE6uYh3s"


def test_a_secret_in_a_path_is_a_placeholder_of_the_route(tmp_path: Path, out: Path) -> None:
    """The file has no secret, and the request with the secret finds the recording again: that is
    what the import asks with."""
    url = f"https://x.example/v1/projects/{PATH_KEY}/models/m:countTokens"
    sent = replace(exchange(b'{"a": 1}', [b'{"totalTokens": 13}']), url=url)
    results = imported(out, cassette(tmp_path / "a.yaml", sent))
    assert not lost(results)
    (scenario,) = load(out)
    assert scenario.route is not None
    assert scenario.route.path == "/v1/projects/{redacted}/models/m:countTokens"
    assert not any(PATH_KEY.encode() in content for content in files_in(out).values())


def test_the_line_of_an_exchange_shows_no_account(tmp_path: Path, out: Path) -> None:
    """The id of a workspace is hidden in what is written, and so in what is printed."""
    url = "https://api.odd.test/v1/organizations/workspaces/wrkspc_01JwQvzr7rXLA5AGx3/members"
    got = exchange(b"", [b"{}"], url=url, headers=JSON)
    (line,) = map(str, imported(out, cassette(tmp_path / "it.yaml", got)))
    assert "wrkspc_01JwQvzr7rXLA5AGx3" not in line
    assert "/workspaces/REDACTED-1" in line


def test_an_address_in_a_cookie_hides_no_host(tmp_path: Path, out: Path) -> None:
    """Where a client goes on after signing in is no credential, written in percent or not: the host
    would be hidden everywhere, in the route of the exchange, too."""
    for name, address in (
        ("a", "https%3A%2F%2Fwww.odd-service.test"),
        ("b", "https://www.odd-service.test"),
    ):
        headers = (*JSON, ("set-cookie", f"callback-url={address}; Path=/"))
        url = f"https://www.odd-service.test/v1/{name}"
        imported(
            out,
            cassette(tmp_path / f"{name}.yaml", exchange(b"", [b"{}"], url=url, headers=headers)),
        )
    assert [one.route and one.route.host for one in load(out)] == ["www.odd-service.test"] * 2


def test_a_host_that_had_a_secret_is_none_of_a_route(tmp_path: Path, out: Path) -> None:
    """Its placeholder is no host, and what is served at another one is found."""
    sent = exchange(b"", [b"{}"], url="https://k7x2-tenant-of-acme.odd.test/v1/x", headers=JSON)
    sent = replace(sent, request_headers=(*JSON, ("x-api-key", "k7x2-tenant-of-acme")))
    assert not lost(imported(out, cassette(tmp_path / "a.yaml", sent)))
    (scenario,) = load(out)
    assert scenario.route is not None
    assert scenario.route.host == ""


def test_what_is_hidden_in_an_answer_is_said(tmp_path: Path, out: Path) -> None:
    """Such an answer is not as it was recorded; what is hidden of a request changes no answer. A
    placeholder that is cut in fragments counts, too."""
    file = cassette(
        tmp_path / "it.yaml",
        answer([user("who?")], "write to ann.lee@corp.io or bob.ray@corp.io"),
        answer([user("who else?")], "write to ann.", "lee@corp.io"),
        answer([user("I am ann.lee@corp.io")], "hello"),
    )
    hidden = [one.hidden for one in imported(out, file)]
    assert hidden == ["2 e-mail address", "1 secret", ""]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("googleapis.com", "'googleapis.com' is no URL of a service"),
        ("https://[x.example/y", "'https://[x.example/y' is no URL of a service"),
        ("https://x.example:port/y", "'https://x.example:port/y' is no URL of a service"),
        ("data:text/plain,hello", "'data:text/plain,hello' is no URL of a service"),
        ("https://x.example/_mockllm/y", "no route has the path"),
    ],
)
def test_what_no_route_can_be_is_a_line_of_the_report(
    tmp_path: Path, out: Path, url: str, reason: str
) -> None:
    """The loader refuses such a route, so none is written; the others of the file are imported."""
    odd = replace(exchange(b"{}", [b"{}"]), url=url)
    results = imported(out, cassette(tmp_path / "a.yaml", odd, answer(HELLO, "hi")))
    assert [result.line.outcome for result in results] == ["skipped", "neutral"]
    assert reason in results[0].line.description
    assert [texts(scenario) for scenario in load(out)] == [["hi"]]


def test_a_name_that_says_nothing(tmp_path: Path, out: Path) -> None:
    """The scenario has the name of the folder instead: Polly.js writes `NAME_1/recording.har`."""
    (tmp_path / "greets_1").mkdir()
    imported(out, cassette(tmp_path / "greets_1" / "recording.yaml", answer(HELLO, "hi")))
    assert [scenario.name for scenario in load(out)] == ["greets-1"]


def test_files_and_descriptions_name_the_cassette(tmp_path: Path, out: Path) -> None:
    """A scenario's files have the name of its cassette, and its description names the position."""
    other = [user("other")]
    file = cassette(tmp_path / "test_trip[openai].yaml", answer(HELLO, "hi"), answer(other, "ho"))
    reserved = cassette(tmp_path / "con.yaml", answer([user("third")], "x"))
    imported(out, file, reserved)
    assert sorted(path.name for path in out.glob("*.yaml")) == [
        "_con.yaml",
        "test_trip[openai]-2.yaml",
        "test_trip[openai].yaml",
    ]
    found = {scenario.name: scenario.description for scenario in load(out)}
    assert found["test-trip-openai-2"].endswith("(test_trip[openai].yaml, exchange 2).")
    assert sorted(path.name for path in out.glob("test_trip*.jsonl")) == [
        "test_trip[openai]-2.1.jsonl",
        "test_trip[openai].1.jsonl",
    ]


def test_the_same_request_in_several_files_is_found_in_order(tmp_path: Path, out: Path) -> None:
    """Each answer is found again, by the order of the requests; nothing loses its match."""
    files = [cassette(tmp_path / f"{name}.yaml", answer(HELLO, f"from {name}")) for name in "zax"]
    results = imported(out, *files)
    assert not lost(results)
    assert all(scenario.match is not None for scenario in load(out))
    assert [one.line.scenario for one in results] == ["z", "a", "x"]


@pytest.mark.parametrize(
    "twins",
    [
        ({"stream": True}, {"stream": False}),
        ({"temperature": 0}, {"temperature": 1}),
        ({"metadata": {"a": "1"}}, {"metadata": {"a": "2"}}),
        ({"stop": ["one", "two"]}, {"stop": ["other", "two"]}),
        ({"tools": []}, {}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "text"}}),
    ],
)
def test_twins_are_told_apart_by_any_field(tmp_path: Path, out: Path, twins: Any) -> None:
    """Requests that differ anywhere get their own answers, in either order."""
    one, two = (answer(HELLO, str(n), **more) for n, more in enumerate(twins))
    for folder, files in ((out, (one, two)), (tmp_path / "turned", (two, one))):
        results = imported(
            folder, *(cassette(tmp_path / f"{n}.yaml", each) for n, each in enumerate(files))
        )
        assert not lost(results)


def test_equal_requests_do_not_hide_what_distinguishes_others(tmp_path: Path, out: Path) -> None:
    """Two recordings of one request have the same conditions, and a third with another request
    is told apart from both."""
    requests = [{"temperature": 0}, {"temperature": 0}, {"temperature": 1}]
    results = imported(
        out,
        *(
            cassette(tmp_path / f"{n}.yaml", answer(HELLO, str(n), **more))
            for n, more in enumerate(requests)
        ),
    )
    assert not lost(results)
    first, second, third = load(out)
    assert first.match == second.match
    assert third.match is not None
    assert third.match.body == {"temperature": 1}


def test_a_second_import_adds_nothing(tmp_path: Path, out: Path) -> None:
    """Exchanges that are in the folder are skipped; a cassette that has grown continues its
    conversation."""
    file = tmp_path / "a.yaml"
    get = replace(answer(HELLO, "x"), method="GET", url="https://api.odd.test/v1/models")
    more = answer([*HELLO, model("hi"), user("more")], "yes")
    imported(out, cassette(file, failure(HELLO), answer(HELLO, "hi"), get))
    before = files_in(out)
    again = imported(out, file)
    assert {one.line.outcome for one in again} == {"skipped"}
    assert files_in(out) == before
    grown = imported(out, cassette(file, failure(HELLO), answer(HELLO, "hi"), get, more))
    assert not lost(grown)
    assert texts(next(scenario for scenario in load(out) if scenario.name == "a")) == ["hi", "yes"]


def test_a_recording_that_an_authored_scenario_hides_is_reported(tmp_path: Path, out: Path) -> None:
    """The line names what answers in its place."""
    out.mkdir()
    (out / "mine.yaml").write_text(
        "scenario: mine\nmatch: {user: hello, model: odd-1}\nturns: [{reply: {text: mine}}]\n"
    )
    (one,) = imported(out, cassette(tmp_path / "a.yaml", answer(HELLO, "hi")))
    assert one.line.not_found == "turn 1 of mine answers its request"
    assert "NOT FOUND AGAIN: turn 1 of mine answers its request" in str(one)


def test_clients_that_rename_call_ids_continue(tmp_path: Path, out: Path) -> None:
    """Some clients give calls new ids in their history. The conversation is one scenario, which
    allows any ids."""
    more = [*HELLO, model(None, ("call_new", "look", "{}")), result("call_new", "1")]
    results = imported(
        out, cassette(tmp_path / "a.yaml", calling(HELLO, "call_1"), answer(more, "yes"))
    )
    assert not lost(results)
    (one,) = load(out)
    assert (len(one.turns), one.any_ids) == (2, True)


def test_answers_of_a_service_with_other_ids_continue(tmp_path: Path, out: Path) -> None:
    """`previous_response_id` is kept as it was, whatever it begins with."""
    first = responding("hello", "resp-1a", "one")
    second = responding("more", "gen_2", "two", previous="resp-1a")
    third = responding("last", "resp_3", "three", previous="gen_2")
    results = imported(out, cassette(tmp_path / "a.yaml", first, second, third))
    assert not lost(results)
    (one,) = load(out)
    assert texts(one) == ["one", "two", "three"]


def test_the_same_message_over_two_apis_and_streamed_or_not(tmp_path: Path, out: Path) -> None:
    """All are found again in one folder, whichever came first."""
    all_ = [
        answer(HELLO, "chat"),
        answer(HELLO, "whole", stream=False),
        responding("hello", "resp_1", "responses"),
        responding("hello", "resp_2", "other", model="other"),
    ]
    for shift in range(len(all_)):
        files = [
            cassette(tmp_path / f"{n}.yaml", one)
            for n, one in enumerate([*all_[shift:], *all_[:shift]])
        ]
        assert not lost(imported(tmp_path / f"out{shift}", *files))


def test_exact_tries(tmp_path: Path, out: Path) -> None:
    """An error before an answer is an earlier try with its own bytes, and so is an answer with
    an error of an unusual form."""
    odd = replace(failure(HELLO), chunks=replace(failure(HELLO)).chunks[:0])
    results = imported(out, cassette(tmp_path / "a.yaml", failure(HELLO), odd, answer(HELLO, "hi")))
    assert not lost(results)
    (one,) = load(out)
    tries = one.turns[0].attempts
    assert [attempt.http and attempt.http.status for attempt in tries] == [429, 429]
    assert all(attempt.recorded is not None for attempt in tries)


def test_routes_are_imported(tmp_path: Path, out: Path) -> None:
    """What calls no model is found again as well: forms with other boundaries, binary answers,
    look-ups that change over time."""

    def form(boundary: str) -> Captured:
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
            f"RIFF\r\n--{boundary}--\r\n"
        )
        kind = (("content-type", f"multipart/form-data; boundary={boundary}"),)
        one = exchange(
            body.encode(), [b'{"text": "hi"}'], headers=(("content-type", "application/json"),)
        )
        url = "https://api.odd.test/v1/audio/transcriptions"
        return replace(one, request_headers=kind, url=url)

    def get(path: str, body: bytes, kind: str) -> Captured:
        one = exchange(b"", [body], headers=(("content-type", kind),))
        return replace(one, method="GET", url=f"https://api.odd.test{path}", request_headers=())

    png = bytes(range(256)) * 40
    results = imported(
        out,
        cassette(
            tmp_path / "a.yaml",
            form("one"),
            get("/v1/files/f/content?x=1&y=2", png, "image/png"),
            get("/v1/batches/b", b'{"status": "queued"}', "application/json"),
            get("/v1/batches/b", b'{"status": "done"}', "application/json"),
        ),
    )
    assert not lost(results)
    found = {
        scenario.route.path: len(scenario.turns)
        for scenario in load(out)
        if scenario.route is not None
    }
    assert found == {"/v1/audio/transcriptions": 1, "/v1/files/f/content": 1, "/v1/batches/b": 2}
    assert (out / "a-2.1.png").read_bytes() == png


def test_without_conditions_a_scenario_plays_only_when_named(tmp_path: Path, out: Path) -> None:
    """`--match none`: its own request does not find it either, as its line shows."""
    (one,) = imported(out, cassette(tmp_path / "a.yaml", answer(HELLO, "hi")), match=MatchRule(()))
    assert "plays only when it is named" in one.line.description
    assert one.line.not_found == ""


def test_secrets_do_not_hide_a_recording(tmp_path: Path, out: Path) -> None:
    """A request with a secret finds its recording, which has the secret no more."""
    secret = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
    body = asks(user(f"my key is {secret}"), user=secret)
    results = imported(out, cassette(tmp_path / "a.yaml", exchange(body, text_events("hi"))))
    assert not lost(results)
    (one,) = load(out)
    recorded = one.turns[0].recorded
    assert recorded is not None
    assert set(recorded.redacted) == {"/messages/0/content", "/user"}
    assert secret not in "".join(path.read_text() for path in out.iterdir())
    assert json.loads(body)["user"] == secret


def test_an_edited_body_of_a_route_is_played(tmp_path: Path, out: Path) -> None:
    """A person who replaces the file of a recorded body gets it, and not the tape."""
    big = b'{"data": "' + b"x" * 5000 + b'"}'
    one = exchange(b'{"input": "a"}', [big], headers=(("content-type", "application/json"),))
    one = replace(one, url="https://api.odd.test/v1/embeddings")
    imported(out, cassette(tmp_path / "a.yaml", one))
    session = Session("s")

    def played() -> Played:
        request = RouteRequest("POST", "/v1/embeddings", "", {}, one.request_body)
        answered = Player(load(out)).routes.play(request, session)
        assert answered is not None
        return answered.played

    assert played().recorded == "exact"
    (out / "a.1.json").write_text('{"data": "y"}')
    assert played().recorded == "edited"


def agent_call(id: str, text: str) -> Captured:
    """A message to an agent of A2A, whose URL has no path."""
    message = {"messageId": id, "parts": [{"kind": "text", "text": text}]}
    body = {"id": id, "method": "message/send", "params": {"message": message}}
    one = exchange(json.dumps(body).encode(), [text.encode()], headers=())
    return replace(one, url="https://agent.odd.test")


def test_what_is_beside_a_generated_id_is_a_condition_of_a_route(tmp_path: Path, out: Path) -> None:
    """A message with other ids gets the recording; another message does not."""
    one = agent_call("0f8fad5b-d9cb-469f-a165-70867728950e", "one")
    (line,) = imported(out, cassette(tmp_path / "a.yaml", one))
    assert (line.request, line.line.not_found) == ("POST /", "")
    (scenario,) = load(out)
    player, again = Player(load(out)), "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    assert not_found(player, agent_call(again, "one"), scenario.name, 0, Session("s")) == ""
    problem = not_found(player, agent_call(again, "two"), scenario.name, 0, Session("s"))
    assert problem == "no scenario answers its request"


def test_generated_ids_are_no_condition_of_a_route(tmp_path: Path, out: Path) -> None:
    """A request with another UUID gets the recording."""

    def call(id: str) -> bytes:
        return json.dumps({"id": id, "method": "list"}).encode()

    one = exchange(call("0f8fad5b-d9cb-469f-a165-70867728950e"), [b"{}"], headers=())
    one = replace(one, url="https://mcp.odd.test/mcp")
    assert not lost(imported(out, cassette(tmp_path / "a.yaml", one)))
    (scenario,) = load(out)
    assert scenario.match is not None
    assert scenario.match.body == {"method": "list"}
    other = replace(one, request_body=call("7c9e6679-7425-40de-944b-e07fc1f90ae7"))
    assert not_found(Player(load(out)), other, scenario.name, 0, Session("s")) == ""


def test_what_json_does_not_have_is_no_condition(tmp_path: Path, out: Path) -> None:
    """Python writes NaN where JSON has no number. It is no condition of the scenario, and an answer
    with it is a text. What YAML would nest too deeply is none either; what Python cannot walk
    through is reported, and the others are imported."""
    odd = exchange(b'{"a": NaN, "b": 1}', [b'{"c": Infinity}'], headers=JSON)
    nested = [b'{"a":' * depth + b"1" + b"}" * depth for depth in (150, 500)]
    deep = [exchange(body, [b"{}"], headers=JSON) for body in nested]
    routes = [replace(one, url="https://x.example/v1/odd") for one in (odd, *deep)]
    results = imported(out, cassette(tmp_path / "a.yaml", *routes, answer(HELLO, "hi")))
    outcomes = [result.line.outcome for result in results]
    assert outcomes == ["neutral", "neutral", "skipped", "neutral"]
    assert "nested too deeply" in results[2].line.description
    assert not lost(results)
    (first,) = (scenario for scenario in load(out) if scenario.name == "a")
    assert first.match is not None
    assert first.match.body == {"b": 1}
    assert first.turns[0].answer is not None
    assert first.turns[0].answer.kind == "text"


def test_a_later_turn_is_found_by_its_request_alone(tmp_path: Path, out: Path) -> None:
    """The conditions that tell first turns apart are those of first requests: a later one may go
    without these fields, or over another API."""
    more = [*HELLO, model("hi"), user("more")]
    files = [
        cassette(tmp_path / "a.yaml", answer(HELLO, "hi", temperature=0), answer(more, "yes")),
        cassette(tmp_path / "b.yaml", answer(HELLO, "hi", temperature=1), answer(more, "no")),
    ]
    assert not lost(imported(out, *files))
    scenarios = {scenario.name: scenario for scenario in load(out)}
    assert [len(scenario.turns) for scenario in scenarios.values()] == [2, 2]
