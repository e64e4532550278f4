"""All recorded traffic at hand, imported and played again: to requests, and to official SDKs."""

import json
from dataclasses import replace
from warnings import catch_warnings, simplefilter

import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.checking.conversations.judge import verify
from mockllm.importers import read
from mockllm.importers.batch import import_files
from mockllm.recording.store.folder import Folder
from mockllm.replay.call import Call
from mockllm.replay.player import Player
from mockllm.replay.session import Exchange, Session
from mockllm.tapes.conversion import detected
from tests.importers.corpus import needs_corpus, recorded_files, title
from tools.accumulators import BREAKS, WAYS
from tools.sdks import playing

pytestmark = [needs_corpus, pytest.mark.slow]

FILES = [(path, one) for path in recorded_files() for one in read(path)]
EXCHANGES = {one.source: one for _, one in FILES}
IDS = {one.source: title(path) + one.source.removeprefix(str(path)) for path, one in FILES}


def is_stream(one):
    return "event-stream" in one.header("content-type")


every_exchange = pytest.mark.parametrize("source", EXCHANGES, ids=IDS.get)
every_stream = pytest.mark.parametrize(
    "source", [name for name, one in EXCHANGES.items() if is_stream(one)], ids=IDS.get
)
every_whole_answer = pytest.mark.parametrize(
    "source", [name for name, one in EXCHANGES.items() if not is_stream(one)], ids=IDS.get
)


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """What became of each exchange by its source, and the scenarios by name."""
    folder = Folder(tmp_path_factory.mktemp("imported"))
    told = import_files(recorded_files(), folder)
    scenarios = {one.name: one for one in folder.scenarios()}
    return {one.line.source: one.line for one in told}, scenarios


def test_everything_is_imported(imported):
    """No exchange is skipped, and each has its turn."""
    lines, scenarios = imported
    assert lines.keys() == EXCHANGES.keys()
    assert {line.outcome for line in lines.values()} == {"neutral", "frames"}
    turns = {(line.scenario, line.turn) for line in lines.values()}
    assert len(turns) == len(lines)
    for name, turn in turns:
        assert scenarios[name].turns[turn].recorded is not None


def test_conversations_stay_together(imported):
    """The exchanges of a cassette are the turns of a scenario, wherever they are one talk."""
    lines, _ = imported
    talks = {}
    for source, line in lines.items():
        if "/cassettes/" in source:
            talks.setdefault(source.rpartition("#")[0], []).append((line.scenario, line.turn))
    assert sum(len(talk) == len({name for name, _ in talk}) for talk in talks.values()) <= 3


@pytest.fixture(scope="module")
def player(imported):
    """Plays all scenarios at once."""
    return Player(imported[1].values(), strict=False)


def asked_again(player, one, session=None):
    """What the player answers to the recorded request, and what it notes of it."""
    session = session or Session("default")
    found = detected(one)
    headers = dict(one.request_headers)
    exchange = Exchange(
        one.method,
        one.path,
        headers,
        one.request_body,
        api=found.protocol.name,
        target=found.target,
    )
    session.record(exchange)
    answer = player.play(Call(found.protocol, found.target, headers, session, exchange))
    return answer, exchange


@every_exchange
def test_every_exchange_replays_byte_for_byte(imported, source):
    """The recorded request is answered with the recorded bytes, letter for letter."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    scenario = scenarios[line.scenario]
    named = scenario.name if scenario.match is None else None
    answer, exchange = asked_again(Player([scenario], strict=False, named=named), one)
    assert exchange.recorded == "exact", exchange.problems
    assert (exchange.scenario, exchange.turn) == (line.scenario, line.turn)
    assert answer.status == one.status
    assert b"".join(answer.data) == one.plain().body


@every_exchange
def test_its_own_request_finds_it(imported, player, source):
    """Among all scenarios, one with a `match` answers the request that it was recorded from."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    if scenarios[line.scenario].match is None:
        pytest.skip("it plays only when it is named")
    answer, exchange = asked_again(player, one)
    assert exchange.recorded == "exact", exchange.problems
    assert (exchange.scenario, exchange.turn) == (line.scenario, line.turn)
    assert b"".join(answer.data) == one.plain().body


def test_no_recorded_conversation_is_blamed(imported):
    """The clients that were recorded had their conversations right, also those of services that
    take what OpenAI's own refuses (`tools: []`, tools of theirs): asked again in one session for
    each scenario, none is refused, and `verify` finds no fault."""
    lines, scenarios = imported
    talks = {}
    for source, line in lines.items():
        talks.setdefault(line.scenario, []).append(EXCHANGES[source])
    for name, talk in talks.items():
        named = name if scenarios[name].match is None else None
        player, session = Player([scenarios[name]], named=named), Session("default")
        for one in talk:
            _, exchange = asked_again(player, one, session)
            assert exchange.recorded == "exact", (name, exchange.problems)
        found = verify(session, scenarios)
        assert found.violations == (), name
    assert sum(len(talk) > 1 for talk in talks.values()) > 10


# What the SDKs make of it


@pytest.fixture(scope="module")
def server():
    with ServerThread([], ServerOptions(speed=0)) as thread:
        yield thread


def said(api, url):
    """What the official SDK makes of the stream behind a URL, its helper first."""
    with catch_warnings():
        # Shapes that a client does not know make pydantic warn, once for each event.
        simplefilter("ignore")
        for way in WAYS[api]:
            try:
                return way.name, way.run(url)
            except BREAKS:
                continue
    raise AssertionError("no way of the SDK takes the stream")


def alone(server, scenario, turn):
    """The URL of a server that answers anything with one turn of a scenario."""
    only = replace(scenario, turns=(replace(turn, request=None),), match=None)
    session = f"corpus-{scenario.name}-{id(turn)}"
    server.server.assign(session, [only], named=only.name)
    return f"{server.url}/s/{session}", session


@every_stream
def test_the_sdk_ends_up_with_the_same(imported, server, source):
    """Played by the server, a turn makes of the official SDK what the original bytes do: as it
    was recorded, and where the report says neutral and equal, from its neutral reply too."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    api = detected(one).protocol.name
    scenario = scenarios[line.scenario]
    turn = scenario.turns[line.turn]
    with playing(one.plain().body) as url:
        way, expected = said(api, url)
    url, session = alone(server, scenario, turn)
    assert said(api, url) == (way, expected)
    server.server.forget(session)
    if line.outcome == "neutral":
        url, session = alone(server, scenario, replace(turn, recorded=None))
        _, neutral = said(api, url)
        server.server.forget(session)
        assert same(api, neutral) == same(api, expected)


def same(api, what):
    """What can be compared, for the SDK is made to ask for a model `m`, and not for tokens: Chat
    Completions tells them only then, and Gemini gives ids only to calls of some models."""
    match api:
        case "chat":
            return replace(what, usage=None)
        case "gemini":
            return replace(what, calls=tuple(("", *call[1:]) for call in what.calls))
    return what


@every_whole_answer
def test_answers_that_are_no_streams(imported, server, source):
    """So it is with answers that came whole: the SDK parses the very object that was recorded."""
    lines, scenarios = imported
    one, line = EXCHANGES[source], lines[source]
    api = detected(one).protocol.name
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
