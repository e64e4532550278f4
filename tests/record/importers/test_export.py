"""Scenarios as VCR cassettes, and back."""

import gzip
import json
from collections import Counter
from dataclasses import replace

import pytest
import vcr as vcrpy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vcr.serialize import deserialize
from vcr.serializers import yamlserializer

from mockllm.core.errors import UsageError
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.play.tapes.captured import Captured, detect_api, dump_tape
from mockllm.record.importers import export, vcr
from mockllm.record.importers.batch import import_files
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from mockllm.scenario.model import Recorded
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.corpus import CORPUS, needs_corpus
from tests.play.tapes.making import Sent, taped
from tools.corpus import decode_turn

APIS = PROTOCOLS.over_http

SCENARIO = """\
scenario: two-turns
match: {user: numbers}
turns:
  - attempts: [{http: 429, retry_after: 2s}]
    reply:
      - {tool: get, id: call_a, arguments: {name: a}}
      - {tool: get, id: call_b, arguments: {name: b}}
  - request: {results: {call_a: "42"}}
    reply: {text: "It is 42."}
  - request: {user: {contains: thank}}
    reply: {text: Not at all.}
  - http: 500
"""

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(
    lambda name: name != "content-encoding"
)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4, unique_by=lambda pair: pair[0])
BODIES = st.binary(max_size=40) | st.text(max_size=40).map(str.encode)
EXCHANGES = st.builds(
    Captured,
    method=st.sampled_from(["POST", "GET"]),
    url=st.text(max_size=20).map(lambda text: f"https://api.example/{text}"),
    request_headers=HEADERS.map(tuple),
    request_body=BODIES,
    status=st.integers(100, 599),
    headers=HEADERS.map(tuple),
    chunks=BODIES.map(lambda body: (TimedBytes(0, body),) if body else ()),
)


BARE = Captured("POST", "https://api.example/", (), b"", 100, (), (TimedBytes(0, b"0"),))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(EXCHANGES, max_size=2))
@example([BARE])  # an answer without headers, of an API that nobody knows
def test_a_cassette_reads_back(tmp_path_factory, exchanges):
    """`read` is the inverse of `cassette` for any bytes, headers and URLs."""
    path = tmp_path_factory.mktemp("cassettes") / "a.yaml"
    path.write_bytes(export.cassette(exchanges).encode())
    assert [replace(one, source="") for one in vcr.read(ForeignFile(path))] == exchanges


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(EXCHANGES, max_size=2))
def test_vcrpy_reads_it_too(exchanges):
    """vcrpy reads the same requests and bodies from the cassette."""
    requests, responses = deserialize(export.cassette(exchanges), yamlserializer)
    assert [request.uri for request in requests] == [exchange.url for exchange in exchanges]
    assert [request.body or b"" for request in requests] == [
        exchange.request_body for exchange in exchanges
    ]
    assert [response["body"]["string"] for response in responses] == [
        exchange.body for exchange in exchanges
    ]
    assert [response["status"]["code"] for response in responses] == [
        exchange.status for exchange in exchanges
    ]


def test_compressed_and_repeated(tmp_path):
    """Compressed bodies stay compressed, repeated headers stay repeated, and the reason phrase
    stays."""
    packed = gzip.compress(b"data: x\n\n")
    headers = (("content-encoding", "gzip"), ("set-cookie", "a"), ("set-cookie", "b"))
    one = Captured(
        "POST", "https://h/", (), b"", 200, headers, (TimedBytes(0, packed),), reason="Right"
    )
    path = tmp_path / "a.yaml"
    path.write_text(export.cassette([one]))
    assert [replace(found, source="") for found in vcr.read(ForeignFile(path))] == [one]


def test_chunks_become_one():
    """A cassette has one body: cuts and times are lost, no byte is."""
    one = Captured(
        "POST", "https://h/", (), b"", 200, (), (TimedBytes(1, b"da"), TimedBytes(2, b"ta"))
    )
    assert "string: data\n" in export.cassette([one])


@pytest.mark.parametrize("api", APIS)
def test_the_conversation_of_a_scenario(api):
    """The client requests cover every turn of a scenario in each API: attempts, results, texts,
    errors."""
    (scenario,) = loads(SCENARIO)
    found = export.exchanges(scenario, api)
    assert [one.status for one in found] == [429, 200, 200, 200, 500]
    assert all(detect_api(one).protocol is PROTOCOLS[api] for one in found)
    assert found[0].request_body == found[1].request_body
    protocol = PROTOCOLS[api]
    for position, one in ((0, found[1]), (1, found[2]), (2, found[3])):
        turn, _ = decode_turn(protocol, protocol.usual.decode(one.body))
        expected = resolve(scenario, position, api)
        assert turn.text == expected.text
        calls = [call.parse_arguments() for call in expected.tool_calls] if api in CALLING else []
        assert [call.parse_arguments() for call in turn.tool_calls] == calls
    bodies = [one.request_body.decode() for one in found]
    assert "numbers" in bodies[1]
    assert ("42" in bodies[2]) == (api in CALLING)
    assert "thank" in bodies[3]
    assert "mock-key" not in "".join(bodies) + repr([one.request_headers for one in found])


def test_a_recorded_turn_exports_its_tape(tmp_path):
    """A turn with a tape exports the recorded request and bytes, in the tape's own protocol."""
    sent = Sent("POST", "https://h/v1/messages", (("x-a", "b"),), b'{"model":"m"}')
    timed = (TimedBytes(5, b"event: "), TimedBytes(9, b"ping\n\n"))
    headers = (("content-type", "text/event-stream"),)
    tape = taped("anthropic", True, 200, headers, timed, request=sent)
    (tmp_path / "a.1.jsonl").write_bytes(dump_tape(tape))
    (scenario,) = loads("scenario: a\nturns:\n  - reply: {text: x}\n  - reply: {text: y}\n")
    recorded = Recorded("a.1.jsonl", str(tmp_path / "a.1.jsonl"))
    first = replace(scenario.turns[0], recorded=recorded)
    one, other = export.exchanges(replace(scenario, turns=(first, scenario.turns[1])))
    assert (one.url, one.request_headers, one.request_body) == (
        sent.url,
        sent.headers,
        sent.body,
    )
    assert (one.headers, one.chunks) == (headers, timed)
    assert other.path == "/v1/messages"
    played = export.exchanges(replace(scenario, turns=(first,)), "chat")
    assert played[0].path == "/v1/chat/completions"


def test_a_protocol_that_it_does_not_play():
    """It is an error that names the protocols of the scenario."""
    (scenario,) = loads("scenario: a\napis: [chat]\nturns:\n  - reply: {text: x}\n")
    with pytest.raises(UsageError, match="does not play over gemini, only over chat"):
        export.exchanges(scenario, "gemini")


@pytest.mark.slow
def test_vcrpy_replays_it(tmp_path):
    """The official SDK gets the scenario's answer from vcrpy."""
    openai = pytest.importorskip("openai")
    (scenario,) = loads(SCENARIO)
    path = tmp_path / "cassette.yaml"
    first = export.exchanges(scenario, "chat")[1]
    path.write_text(export.cassette([first]))
    client = openai.OpenAI(api_key="none", max_retries=0)
    body = json.loads(first.request_body)
    body.pop("stream")
    with client, vcrpy.use_cassette(str(path), record_mode="none") as cassette:
        with client.chat.completions.stream(**body) as stream:
            calls = stream.get_final_completion().choices[0].message.tool_calls
        assert cassette.all_played
    assert [(call.id, call.function.arguments) for call in calls] == [
        ("call_a", '{"name":"a"}'),
        ("call_b", '{"name":"b"}'),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_every_shipped_scenario_exports(api, shipped):
    """The result of every shipped scenario can be read as exchanges of its API."""
    for scenario in shipped:
        if scenario.plays_over(api):
            for exchange in export.exchanges(scenario, api):
                assert detect_api(exchange).protocol is PROTOCOLS[api]


@pytest.fixture(scope="module")
def shipped():
    return load([shipped_scenarios()])


TRIED = """\
scenario: tried
turns:
  - attempts: [{http: 429, recorded: a.1.jsonl}, {http: 500}]
    reply: {text: x}
    recorded: a.2.jsonl
"""


def test_recorded_attempts_export_their_tapes(tmp_path):
    """An attempt with a tape is its recorded exchange; one without is played."""
    sent = [Sent("POST", f"https://h/v1/messages?try={n}", (), b"{}") for n in (1, 2)]
    for number, (status, request) in enumerate(zip((429, 200), sent, strict=True), 1):
        tape = taped("anthropic", False, status, (), (TimedBytes(0, b"x"),), request=request)
        (tmp_path / f"a.{number}.jsonl").write_bytes(dump_tape(tape))
    (tmp_path / "a.yaml").write_text(TRIED)
    (scenario,) = load([tmp_path])
    first, second, third = export.exchanges(scenario)
    assert [one.status for one in (first, second, third)] == [429, 500, 200]
    assert (first.url, third.url) == (sent[0].url, sent[1].url)
    assert (first.body, third.body) == (b"x", b"x")


def _facts(one):
    return one.method, one.url, one.request_body, one.status, one.plain().body


@pytest.mark.slow
@needs_corpus
def test_an_imported_cassette_exports_all_that_it_had(tmp_path):
    """For each cassette of a whole suite: every exchange that was written is exported, once for
    each conversation that it belongs to, and in its order."""
    redactor = Redactor()
    for number, file in enumerate(sorted((CORPUS / "suite").rglob("*.yaml"))):
        results = import_files([file], Folder(tmp_path / str(number)))
        skipped = {
            result.line.source
            for result in results
            if result.line.outcome == "skipped" or result.line.scenario.startswith("mcp:")
        }
        expected = [
            _facts(redactor.exchange(one))
            for one in vcr.read(ForeignFile(file))
            if isinstance(one, Captured) and one.source not in skipped
        ]
        exported = []
        for scenario in load([tmp_path / str(number)]) if expected else ():
            if scenario.server is not None:  # it has answers, and no exchanges
                continue
            own = [_facts(exchange) for exchange in export.exchanges(scenario)]
            positions = [expected.index(one) for one in own]
            assert positions == sorted(positions), (file, scenario.name)
            exported += own
        assert not Counter(expected) - Counter(exported), file
