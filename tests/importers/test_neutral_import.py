"""What an import calls neutral is what the YAML plays without its tapes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mockllm.core.frame import Frame
from mockllm.framing.sse import decode
from mockllm.importers.batch import import_files
from mockllm.matching.select import Selection
from mockllm.protocols.normalisation import in_envelope, normalized
from mockllm.recording.store.folder import Folder
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import http_error_answer
from mockllm.replay.routes import route_answer
from mockllm.tapes.conversion import captured_of, detected, request_of
from mockllm.tapes.load import load_tape
from tests.importers.corpus import needs_corpus, recorded_files, suite_files

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


def frames(protocol, body, *, streamed):
    """The events of an answer; a body in its envelope."""
    if streamed:
        return list(decode(body))
    value = json.loads(body)
    items = value if isinstance(value, list) else [in_envelope(protocol, value)]
    return [Frame(json.dumps(item)) for item in items]


def difference_of_turn(scenario, index):
    """How the YAML of a turn differs from its tape; "" where it does not."""
    turn = scenario.turns[index]
    tape = load_tape(Path(turn.recorded.path).read_bytes(), turn.recorded.file)
    one = captured_of(tape).plain()
    if scenario.route is not None:
        return difference_of_route(turn, one)
    bare = replace(scenario, turns=tuple(replace(each, recorded=None) for each in scenario.turns))
    found = detected(one)
    selection = Selection(bare, index, index)
    if turn.http is not None:
        answer = http_error_answer(found.protocol, turn.http, selection, 1)
    else:
        answer = Replayer().answer(selection, request_of(one, found), found.protocol)
    if answer.status != one.status:
        return f"{answer.status}, not {one.status}"
    streamed = "event-stream" in one.header("content-type") or not one.body.startswith(
        (b"{", b"[", b" ", b"\n")
    )
    sent = frames(found.protocol, b"".join(answer.data), streamed=answer.streamed)
    recorded = frames(found.protocol, one.body, streamed=streamed)
    same = normalized(found.protocol, sent) == normalized(found.protocol, recorded)
    return "" if same else "other events"


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
    """Each exchange that is reported as neutral, errors and routes included, is played as recorded
    from the written YAML alone; none is left out."""
    scenarios, lines = imported
    by_name = {one.name: one for one in scenarios}
    neutral = [
        (by_name[name], index)
        for (name, index), found in lines.items()
        if found[-1].outcome == "neutral"
    ]
    assert all(len(found) == 1 for place, found in lines.items() if place[0])
    found = {f"{one.name} {index}": difference_of_turn(one, index) for one, index in neutral}
    assert len(neutral) > 80
    assert {name: difference for name, difference in found.items() if difference} == {}
