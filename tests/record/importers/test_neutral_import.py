"""What an import calls neutral is what the YAML plays without its tapes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mockllm.core.turn import Opaque, ServerTool, ToolCall
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.route_player import route_answer
from mockllm.play.tapes.captured import detect_api, load_tape, request_of
from mockllm.play.tapes.recorded_turn import recorded_error, recorded_turn
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.folder import Folder
from mockllm.wire.protocols.decoding import decode_turn
from tests.corpus import needs_corpus, recorded_files, suite_files

pytestmark = [needs_corpus, pytest.mark.slow]


@pytest.fixture(params=["recordings", "suite"])
def imported(request, tmp_path):
    """The scenarios of an import, and the lines of its report by scenario and turn."""
    folder = Folder(tmp_path)
    paths = recorded_files() if request.param == "recordings" else suite_files()
    lines = {}
    for result in import_files(paths, folder):
        lines.setdefault((result.line.scenario, result.line.turn), []).append(result.line)
    return folder.scenarios(), lines


def content(turn):
    """What a client reads of a turn; a service may send usage that was not requested, and ids of
    calls that are derived in the YAML."""
    parts = tuple(part for part in turn.whole().parts if not isinstance(part, Opaque))
    named = tuple(replace(p, id="") if isinstance(p, ToolCall | ServerTool) else p for p in parts)
    return replace(turn.whole(), parts=named, usage=None)


def difference_of_turn(scenario, index):
    """How the YAML of a turn differs from its tape; "" where it does not."""
    turn = scenario.turns[index]
    tape = load_tape(Path(turn.recorded.path).read_bytes(), turn.recorded.file)
    one = tape.exchange.plain()
    if scenario.route is not None:
        return difference_of_route(turn, one)
    bare = replace(scenario, turns=tuple(replace(each, recorded=None) for each in scenario.turns))
    protocol = detect_api(one).protocol
    if turn.http is not None:
        return "" if recorded_error(one, protocol) == turn.http else "another error"
    request = request_of(one, detect_api(one))
    answer = Replayer().answer(Selection(bare, index, index), request, protocol)
    body = b"".join(answer.data)
    carrier = protocol.carrier(protocol.options(request))
    sent = decode_turn(protocol, carrier.decode(body))[0] if answer.streamed else None
    sent = sent or protocol.decode_body(json.loads(body))
    recorded = recorded_turn(one, protocol, streamed=tape.streamed).turn
    if recorded.finish is None:  # a body without a finish gets the usual one
        sent = replace(sent, finish=None)
    return "" if content(sent) == content(recorded) else "another answer"


def difference_of_route(turn, one):
    """How the answer of a route differs from its tape."""
    path = turn.answer.path if turn.answer is not None else ""
    content = Path(path).read_bytes() if path else None
    answer = route_answer(replace(turn, recorded=None), content)
    sent = b"".join(answer.data)
    if answer.status != one.status:
        return f"{answer.status}, not {one.status}"
    if sent == one.body or json.loads(sent) == json.loads(one.body):
        return ""
    return "another body"


def test_an_import_calls_neutral_what_the_yaml_plays(imported):
    """A client reads the same of each exchange that is reported as neutral, errors and routes
    included, from the written YAML alone; none is left out."""
    scenarios, lines = imported
    by_name = {scenario.name: scenario for scenario in scenarios}
    neutral = [
        (by_name[name], index)
        for (name, index), found in lines.items()
        if found[-1].outcome == "neutral" and by_name[name].server is None
    ]
    models = {name for name, scenario in by_name.items() if scenario.server is None}
    assert all(len(found) == 1 for place, found in lines.items() if place[0] in models)
    found = {f"{one.name} {index}": difference_of_turn(one, index) for one, index in neutral}
    assert len(neutral) > 80
    assert {name: difference for name, difference in found.items() if difference} == {}
