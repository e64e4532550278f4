"""Dumping is the inverse of loading, and its text is written for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings

from mockllm.play.replay.broken_answer import fault_mistakes
from mockllm.play.replay.loading import VOCABULARY, load, loads
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario
from mockllm.scenario.reading.nodes import documents
from mockllm.scenario.reading.values import Findings, json_value
from mockllm.scenario.yamltext import write
from tests.cases import for_all
from tests.scenario.strategies import scenarios
from tests.strategies import any_texts, json_values

SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))

SECRET = """\
scenario: secret-numbers
description: Two tool calls in one turn, their results, then the answer.
match:
  user: secret numbers
tools:
  - name: get_secret_number
    parameters:
      type: object
      properties:
        name:
          type: string
      required: [name]
turns:
  - reply:
      - tool: get_secret_number
        id: call_alice
        arguments:
          name: alice
        split: ['{"na', 'me":"al', 'ice"}']
      - parallel:
          - tool: get_secret_number
            arguments: '{"name": "bob"}'
            split: 7
          - tool: get_secret_number
            arguments: '{'
            malformed: true
        order: [0, 1, 0, 0]
  - request:
      results:
        call_alice: '42'
    reply:
      - text: |-
          Alice's number is 42.
          Bob's is 7 😀.
        split: words
        every: 20ms
    timing:
      ttft: 1500ms
      jitter: 20%
      at: [0, 1s, 2m, 5us]
    repeat: true
    when:
      api: chat
      http: 429
      timing: null
"""


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=50)
@given(scenarios())
def test_load_is_the_inverse_of_dump(scenario: Scenario) -> None:
    """`loads(dump(scenario)) == (scenario,)`."""
    assume(not list(fault_mistakes(scenario)))  # a fault that cannot strike is no valid file
    text = dump(scenario)
    assert loads(text) == (scenario,)
    assert dump(loads(text)[0]) == text


@given(json_values | any_texts)
def test_values_survive_yaml(value: object) -> None:
    """Any JSON value reads back from its YAML text, with the same types."""
    (document,) = documents(write({"value": value}), "<text>")
    findings = Findings(VOCABULARY)
    read = json_value(document.root, findings)
    assert repr(read) == repr({"value": value})
    assert not findings.found
    assert not document.notes


@for_all("parser", [yaml.CSafeLoader, yaml.SafeLoader])
def test_escapes_are_read_as_json_reads_them(parser: type) -> None:
    """Two halves of a surrogate pair are the character of both, and one alone stays; so YAML has
    what JSON has. Whether documents before it have none makes no difference."""
    text = '{"a": "\\ud83d\\ude00", "\\udfff": "\\ud83d \\ude00\\ud83d", "é": "\\ud83dé"}'
    first, second = documents(f"a: 1\n---\n{text}\n", "<text>", parser)
    read = [json_value(document.root, Findings(VOCABULARY)) for document in (first, second)]
    assert read == [{"a": 1}, json.loads(text)]


def test_canonical_text() -> None:
    """Canonical text has the order of the documentation and dumps to itself."""
    assert dump(loads(SECRET)[0]) == SECRET


@for_all("text", ["yes", "no", "null", "5", "1e3", "0x1f", "<<", "~", "", "a: b"])
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    """Text that a YAML reader could read as another type is quoted."""
    assert write([text]) == f"['{text}']\n"


@pytest.mark.skipif(not SHIPPED, reason="the shipped scenarios are not beside the tests")
@for_all("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_survive(path: Path) -> None:
    """Every shipped scenario is the same after dumping and loading."""
    for scenario in load([path]):
        assert loads(dump(scenario)) == (scenario,)
