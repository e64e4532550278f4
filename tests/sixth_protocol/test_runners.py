"""Runners of clients of an API that mockllm learnt from a line in a table."""

import io
import json
import sys
from pathlib import Path

import pytest

from mockllm.checking import Policy
from mockllm.checking.cases.build import case
from mockllm.checking.cases.compile import cases
from mockllm.conformance.clients.messages import as_json
from mockllm.conformance.clients.runner import AnswerFile, Runner, pipe_runner, write_cases
from mockllm.conformance.clients.self_test import self_test
from mockllm.play.quirks.samples import CALL, SAMPLES
from tests.timeouts import GIVE_UP

RUNNER = [sys.executable, "-m", "tests.sixth_protocol.runner"]
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["bytes", "payloads"])
def test_a_runner(level):
    found = list(cases("echo", SAMPLES.values(), variations=1, quirks=False))
    with pipe_runner(RUNNER, "echo", level, limit=GIVE_UP, cwd=ROOT) as runner:
        report = runner.examine(found, Policy())
    assert report.good
    assert report.runs > 15


@pytest.mark.slow
def test_the_self_test_of_a_runner():
    assert self_test(RUNNER, "echo", limit=GIVE_UP, cwd=ROOT) == []


def test_cases_and_answers_as_files(tmp_path):
    found = [case(CALL, "echo")]
    stream = io.BytesIO()
    assert write_cases(found, "echo", "bytes", stream) == (1, [])
    question, sent = map(json.loads, stream.getvalue().splitlines())
    assert question["api"] == "echo"
    hello = {"mockllm": 1, "client": {"name": "echo"}}
    path = tmp_path / "answers.jsonl"
    answer = {"id": sent["id"], **as_json(found[0].expected)}
    path.write_text(f"{json.dumps(hello)}\n{json.dumps(answer)}\n")
    assert Runner(AnswerFile(path, found)).examine(found, Policy()).good
