"""The corpus, imported and played again: to its own requests and to official SDKs."""

import json
from dataclasses import replace
from warnings import catch_warnings, simplefilter

import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.checking.conversations.judge import verify
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import detect_api
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.finding import recorded_before
from mockllm.record.recording.store.folder import Folder
from tests.cases import for_all
from tests.corpus import needs_corpus, read, recorded_files, title
from tests.entries import played_entry
from tools.accumulators import BREAKS, CLIENT_CALLS
from tools.sdks import playing

pytestmark = [needs_corpus, pytest.mark.slow]

FILES = [(path, one) for path in recorded_files() for one in read(path)]
EXCHANGES = {file.source: file for _, file in FILES}
IDS = {file.source: title(path) + file.source.removeprefix(str(path)) for path, file in FILES}


def is_stream(one):
    return "event-stream" in one.header("content-type")


every_exchange = for_all("source", EXCHANGES, ids=IDS.get)
every_stream = for_all(
    "source", [name for name, one in EXCHANGES.items() if is_stream(one)], ids=IDS.get
)
every_whole_answer = for_all(
    "source", [name for name, one in EXCHANGES.items() if not is_stream(one)], ids=IDS.get
)


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """The report of each exchange by its source, and the scenarios by name."""
    folder = Folder(tmp_path_factory.mktemp("imported"))
    results = import_files(recorded_files(), folder)
    scenarios = {scenario.name: scenario for scenario in folder.scenarios()}
    return {result.line.source: result.line for result in results}, scenarios


def test_everything_is_imported(imported):
    """No exchange is skipped, and each has its turn."""
    lines, scenarios = imported
    assert lines.keys() == EXCHANGES.keys()
    assert "skipped" not in {line.outcome for line in lines.values()}
    turns = {(line.scenario, line.turn) for line in lines.values()}
    assert len(turns) == len(lines)
    for name, turn in turns:
        assert scenarios[name].turns[turn].recorded is not None


def test_conversations_stay_together(imported):
    """The exchanges of a cassette are turns of one scenario where they are one conversation."""
    lines, _ = imported
    conversations = {}
    for source, line in lines.items():
        if "/cassettes/" in source:
            conversations.setdefault(source.rpartition("#")[0], []).append(
                (line.scenario, line.turn)
            )
    assert (
        sum(len(turns) == len({name for name, _ in turns}) for turns in conversations.values()) <= 3
    )


@pytest.fixture(scope="module")
def player(imported):
    """A player of all imported scenarios."""
    return Player(imported[1].values(), strict=False)


def replayed(player, one, session=None):
    """The player's answer to a recorded request, and its journal entry."""
    session = session or Session("default")
    found = detect_api(one)
    headers = dict(one.request_headers)
    call = ApiCall(found.protocol, found.target, headers, one.request_body, session)
    answered = player.play(call)
    exchange = played_entry(answered.played, one.request_body)
    session.record(exchange)
    return answered.answer, exchange


@every_exchange
def test_every_exchange_replays_byte_for_byte(imported, source):
    """The recorded request is answered with exactly the recorded bytes."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    scenario = scenarios[line.scenario]
    named = scenario.name if scenario.match is None else None
    answer, exchange = replayed(Player([scenario], strict=False, named=named), one)
    assert exchange.played.recorded == "exact", exchange.problems
    assert (exchange.scenario, exchange.turn) == (line.scenario, line.turn)
    assert answer.status == one.status
    assert b"".join(answer.data) == one.plain().body


@every_exchange
def test_each_recording_is_found_by_its_request(imported, player, source):
    """Among all scenarios, each one answers the request that it was recorded from, after those
    that were recorded from the same request before."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    if scenarios[line.scenario].match is None:
        pytest.skip("it plays only when it is named")
    session = Session("default")
    for scenario, turn in recorded_before(player, one, line.scenario, line.turn):
        session.note_played(scenario.name, turn)
    answer, exchange = replayed(player, one, session)
    assert exchange.played.recorded == "exact", exchange.problems
    assert (exchange.scenario, exchange.turn) == (line.scenario, line.turn)
    assert b"".join(answer.data) == one.plain().body


def test_verify_finds_no_fault_in_recorded_conversations(imported):
    """The recorded clients made no mistakes, those of services included that accept more than
    OpenAI (`tools: []`, tools of their own). Each conversation is replayed in a session of its own:
    no request is refused, and `verify` reports nothing."""
    lines, scenarios = imported
    conversations = {}
    for source, line in lines.items():
        conversations.setdefault(line.scenario, []).append(EXCHANGES[source])
    for name, exchanges in conversations.items():
        named = name if scenarios[name].match is None else None
        player, session = Player([scenarios[name]], named=named), Session("default")
        for one in exchanges:
            _, exchange = replayed(player, one, session)
            assert exchange.played.recorded == "exact", (name, exchange.problems)
        found = verify(session, scenarios)
        assert found.violations == (), name
    assert sum(len(exchanges) > 1 for exchanges in conversations.values()) > 5


# The official SDKs


@pytest.fixture(scope="module")
def server():
    with ServerThread([], ServerOptions(speed=0)) as thread:
        yield thread


def sdk_result(api, url):
    """The result of the official SDK for the stream behind a URL, and which of its methods gave
    it."""
    with catch_warnings():
        # Shapes that a client does not know make pydantic warn, once for each event.
        simplefilter("ignore")
        for way in CLIENT_CALLS[api]:
            try:
                return way.name, way.run(url)
            except BREAKS:
                continue
    raise AssertionError("no way of the SDK takes the stream")


def alone(server, scenario, turn):
    """The URL of a server that answers every request with one turn of a scenario."""
    only = replace(scenario, turns=(replace(turn, request=None),), match=None)
    session = f"corpus-{scenario.name}-{id(turn)}"
    server.server.assign(session, [only], named=only.name)
    return f"{server.url}/s/{session}", session


@every_stream
def test_the_sdk_gets_the_same_result(imported, server, source):
    """The official SDK reads the same from the replayed turn as from the original bytes. Where the
    report says neutral, it reads the same from the neutral reply."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    api = detect_api(one).protocol.name
    scenario = scenarios[line.scenario]
    turn = scenario.turns[line.turn]
    with playing(one.plain().body) as url:
        way, expected = sdk_result(api, url)
    url, session = alone(server, scenario, turn)
    assert sdk_result(api, url) == (way, expected)
    server.server.forget(session)
    if line.outcome == "neutral":
        url, session = alone(server, scenario, replace(turn, recorded=None))
        _, neutral = sdk_result(api, url)
        server.server.forget(session)
        assert same(api, neutral) == same(api, expected)


def same(api, what):
    """The comparable part of a result. The SDK's request has the model `m` and no usage option, and
    some fields depend on these: Chat Completions sends usage on request only, and Gemini sends ids
    with calls of some models only."""
    match api:
        case "chat":
            return replace(what, usage=None)
        case "anthropic":  # a count of zero is the same as none
            return replace(what, usage=tuple(count or 0 for count in what.usage or ()))
        case "gemini":
            return replace(what, calls=tuple(("", *call[1:]) for call in what.calls))
    return what


@every_whole_answer
def test_answers_that_are_not_streamed(imported, server, source):
    """The SDK parses exactly the recorded object."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    api = detect_api(one).protocol.name
    turn = scenarios[line.scenario].turns[line.turn]
    url, session = alone(server, scenarios[line.scenario], turn)
    message = {"messages": [{"role": "user", "content": "?"}], "model": "m"}
    if api == "chat":
        openai = pytest.importorskip("openai")
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            got = client.chat.completions.create(**message)
            wanted = openai.types.chat.ChatCompletion.model_validate(json.loads(one.body))
    else:
        assert api == "anthropic"
        anthropic = pytest.importorskip("anthropic")
        with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
            got = client.messages.create(**message, max_tokens=9)
            wanted = anthropic.types.Message.model_validate(json.loads(one.body))
    server.server.forget(session)
    assert got.model_dump() == wanted.model_dump()
