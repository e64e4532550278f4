"""Scenarios with a route: how they are read, written and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load, loads
from mockllm.scenario import model as m
from mockllm.scenario.dump import dump
from mockllm.scenario.reading import files
from mockllm.scenario.route_model import RouteAnswer, RouteSpec
from tests.scenario.route_strategies import route_scenarios
from tests.scenario.test_schema import accepted

EMBEDDING = """\
scenario: embed-hello
route: POST /v1/embeddings
match:
  query:
    api-version:
      regex: ^2
  body:
    input: hello
turns:
  - answer:
      json:
        data:
          - embedding: [0.1, 0.2]
  - answer:
      status: 503
      headers:
        retry-after: '1'
      text: busy
    timing:
      ttft: 20ms
"""


@given(route_scenarios)
def test_load_is_the_inverse_of_dump(scenario: m.Scenario) -> None:
    """`loads(dump(scenario)) == (scenario,)`, and editors accept the text."""
    text = dump(scenario)
    assert loads(text) == (scenario,)
    assert dump(loads(text)[0]) == text
    assert accepted(text)


def test_a_route_is_written_as_a_person_would() -> None:
    """The dump of a scenario has its keys in the order of the documentation."""
    (scenario,) = loads(EMBEDDING)
    assert scenario.route == RouteSpec("POST", "/v1/embeddings")
    assert scenario.turns[1].answer == RouteAnswer(
        503, (("retry-after", "1"),), kind="text", value="busy"
    )
    assert dump(scenario) == EMBEDDING


def test_null_is_a_json_body() -> None:
    """`json: null` is a body, and an answer without a body is another value."""
    null, empty = loads("scenario: a\nroute: GET /x\nturns: [{answer: {json: }}, {answer: {}}]")[
        0
    ].turns
    assert null.answer == RouteAnswer(kind="json")
    assert empty.answer == RouteAnswer()


def test_base64_may_be_folded() -> None:
    """Long base64 may be spread over lines."""
    (scenario,) = loads(
        "scenario: a\nroute: GET /x\nturns:\n  - answer:\n      base64: |\n"
        "        AAEC\n        /w==\n"
    )
    assert scenario.turns[0].answer == RouteAnswer(kind="base64", value="AAEC\n/w==\n")


FILE = "scenario: a\nroute: GET /x\nturns: [{answer: {file: body.bin}}]\n"


def test_the_file_of_an_answer_is_beside_its_scenario(tmp_path: Path) -> None:
    """The loaded answer has the path of its file."""
    (tmp_path / "a.yaml").write_text(FILE)
    (tmp_path / "body.bin").write_bytes(b"\0\xff")
    (scenario,) = load(tmp_path)
    assert scenario.turns[0].answer is not None
    assert scenario.turns[0].answer.path == str(tmp_path / "body.bin")


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    """A file that is not there is reported at its name."""
    (tmp_path / "a.yaml").write_text(FILE)
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'a.yaml'}:3:25: turns[0].answer.file: 'body.bin' cannot be read: No such "
        "file or directory; put the body of the answer there"
    )


def test_a_file_never_leaves_the_folder(tmp_path: Path) -> None:
    """A link to a file elsewhere is refused."""
    folder = tmp_path / "scenarios"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "a.yaml").write_text(FILE.replace("body.bin", "sub/body.bin"))
    (folder / "sub" / "body.bin").symlink_to("../../secret")
    with pytest.raises(ScenarioError, match="is a link that leaves the folder"):
        load(folder)


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the bound is refused when it is loaded."""
    monkeypatch.setattr(files, "MAX_BODY", 1024 * 1024)
    (tmp_path / "a.yaml").write_text(FILE)
    (tmp_path / "body.bin").write_bytes(bytes(1024 * 1024 + 1))
    with pytest.raises(ScenarioError, match=r"'body\.bin' is larger than 1 MiB"):
        load(tmp_path)


def test_recordings_of_one_route_may_compete(tmp_path: Path) -> None:
    """Two recordings with the same route and no condition load; authored ones do not."""
    text = "scenario: {}\nroute: GET /x\nturns: [{{answer: {{text: a}}{}}}]\n"
    recorded = ", recorded: t.jsonl"
    assert len(loads(text.format("a", recorded) + "---\n" + text.format("b", recorded))) == 2
    assert len(loads(text.format("a", "") + "---\n" + text.format("b", recorded))) == 2
    with pytest.raises(ScenarioError, match="matches the same requests as scenario 'a'"):
        loads(text.format("a", "") + "---\n" + text.format("b", ""))


def test_other_queries_are_other_conditions() -> None:
    """Scenarios of one route that differ in the query do not compete."""
    text = "scenario: {0}\nroute: GET /x\nmatch: {{query: {{page: {0}}}}}\n"
    text += "turns: [{{answer: {{}}}}]\n"
    assert len(loads(text.format("a") + "---\n" + text.format("b"))) == 2
