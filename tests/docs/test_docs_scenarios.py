"""Every complete example on the pages about the scenario language loads."""

import re

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.route_player import RoutePlayer
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import load_tape
from tests.cases import for_all
from tests.docs.pages import text_of

TEXT = text_of("scenarios", "conditions", "turns", "branches", "parts", "reuse", "routes")
FENCES = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(info):
    """The blocks of one language, with the line of the page on which each begins."""
    return [
        pytest.param(found[2], id=f"line {TEXT.count(chr(10), 0, found.start()) + 1}")
        for found in FENCES.finditer(TEXT)
        if found[1] == info
    ]


@for_all("source", blocks("yaml"))
def test_every_example_loads(source):
    """A reader can paste any complete example into a file and serve it."""
    assert loads(source)


def test_there_are_examples():
    """The page has many complete examples, and every kind of block is checked."""
    assert len(blocks("yaml")) >= 15
    assert {found[1] for found in FENCES.finditer(TEXT)} <= {
        "yaml",
        "yaml fragment",
        "text",
        "jsonl",
    }


def test_examples_load_together():
    """No two examples conflict, so that all of them can be in one file."""
    sources = [block.values[0] for block in blocks("yaml")]
    scenarios = loads("---\n".join(sources))
    assert len(scenarios) == sum(source.count("scenario: ") for source in sources)


def test_the_sample_errors_are_real():
    """The page has the exact problems of the broken example."""
    broken = next(b.values[0] for b in blocks("yaml fragment") if "splt" in b.values[0])
    (errors,) = (block.values[0] for block in blocks("text"))
    with pytest.raises(ScenarioError) as caught:
        loads(broken, "greet.yaml")
    assert errors.rstrip("\n") == str(caught.value)


def test_the_included_file_is_loaded(tmp_path):
    """The scenario on the page loads with the file that it includes."""
    for block in blocks("yaml fragment"):
        if name := re.match(r"# ([\w-]+\.yaml)\n", block.values[0]):
            (tmp_path / name[1]).write_text(block.values[0])
    (scenario,) = load(tmp_path)
    assert [len(turn.reply) for turn in scenario.turns] == [1, 2]
    assert [tool.name for tool in scenario.tools] == ["search"]


def test_the_sample_tape_can_be_loaded():
    """The tape on the page can be played."""
    (tape,) = (block.values[0] for block in blocks("jsonl"))
    assert [part.at for part in load_tape(tape.encode(), "greeting.1.jsonl").exchange.chunks] == [
        412003,
        431877,
    ]


def test_the_routes_on_the_page_answer():
    """Each example with a route answers a request for it."""
    sources = [block.values[0] for block in blocks("yaml") if "\nroute: " in block.values[0]]
    scenarios = loads("---\n".join(sources))
    player = RoutePlayer(scenarios)
    upload = b'{"purpose": "batch", "file": {"filename": "requests.jsonl"}, "input": "hello there"}'
    for scenario in scenarios:
        path = scenario.route.path.replace("{id}", "f1")
        query = "after=file-20&limit=5"
        request = RouteRequest(scenario.route.method, path, query, {}, upload)
        answered = player.play(request, Session("page"))
        assert answered.answer.status == scenario.turns[0].answer.status
        assert answered.played.scenario == scenario.name
    assert len(scenarios) >= 4
