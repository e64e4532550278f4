"""The commands that look at scenarios know a protocol that is registered."""

from __future__ import annotations

import json
import sys

import pytest
from jsonschema import Draft202012Validator

from mockllm.play.quirks import QUIRKS
from mockllm.play.replay.loading import VOCABULARY, load
from mockllm.scenario.reading.nodes import documents
from mockllm.scenario.reading.values import Findings, json_value
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.conftest import acts, spoken

ONLY_ECHO = """\
scenario: only-echo
description: Plays over one protocol.
apis: [echo]
match: {user: hi}
turns:
  - reply:
      - {text: Hello}
    when:
      - api: echo
        reply:
          - {text: Hello hall}
          - {frame: {event: applause, data: {act: applause, loud: true}}, api: echo}
"""
CITED = """\
scenario: cited
match: {user: hi}
turns:
  - reply: [{text: As is known., citations: [{url: "https://example.com/", title: They}]}]
"""
WRONG = """\
scenario: wrong
apis: [ehco]
match: {user: hi}
turns: [{reply: {text: Hello}}]
"""


@pytest.fixture
def own(tmp_path):
    """A file with a scenario for the Echo API only."""
    path = tmp_path / "own.yaml"
    path.write_text(ONLY_ECHO)
    return path


def test_show(mockllm, folder):
    """`show` prints the bytes of a turn, streamed and not, and of an attempt that fails."""
    shown = mockllm("show", "numbers", "--scenarios", folder, "--api", "echo")
    assert shown.exit_code == 0, shown.output
    assert spoken(shown.output) == "One moment."
    assert shown.output.endswith("data: *silence*\n\n")
    body = mockllm("show", "numbers", "--scenarios", folder, "--api", "echo", "--body")
    assert [part["kind"] for part in json.loads(body.output)["script"]] == [
        "musing",
        "line",
        "cue",
        "cue",
    ]
    failed = mockllm("show", "numbers", "--scenarios", folder, "--api", "echo", "--attempt", "1")
    assert failed.output.startswith("HTTP/1.1 429 ")
    assert '"kind":"too_loud"' in failed.output


def test_show_without_an_api(mockllm, own):
    """The first protocol that a scenario plays over may be this one; frames go out as they are."""
    shown = mockllm("show", "only-echo", "--scenarios", own)
    assert shown.exit_code == 0, shown.output
    assert spoken(shown.output) == "Hello hall"
    assert {"act": "applause", "loud": True} in acts(shown.output)
    refused = mockllm("show", "only-echo", "--scenarios", own, "--api", "chat")
    assert refused.exit_code == 2
    assert "it plays over: echo" in refused.stderr


def test_show_with_a_quirk(mockllm, folder):
    """A quirk of framing changes the bytes."""
    arguments = ("show", "numbers", "--scenarios", folder, "--api", "echo")
    assert "\r\n" in mockllm(*arguments, "--quirk", "sse-crlf").stdout_bytes.decode()


def test_validate(mockllm, own):
    """`apis`, `when` and `frame` take the name."""
    result = mockllm("validate", own)
    assert (result.exit_code, result.output) == (0, "1 scenario, no problems\n")


def test_validate_lists_the_names(mockllm, tmp_path):
    """A name that is none is refused with the names that are there."""
    (tmp_path / "wrong.yaml").write_text(WRONG)
    result = mockllm("validate", tmp_path)
    assert result.exit_code == 1
    assert "echo" in result.output


def test_validate_losses(mockllm, tmp_path):
    """`--losses` names what the protocol cannot express."""
    (tmp_path / "cited.yaml").write_text(CITED)
    result = mockllm("validate", tmp_path, "--losses")
    lines = [line for line in result.output.splitlines() if "echo" in line]
    assert result.exit_code == 0, result.output
    assert len(lines) == 1
    assert "citation" in lines[0]


def test_list(mockllm, folder, own):
    """`list` shows where scenarios play; "all" are six."""
    everything, one = json.loads(mockllm("list", folder, own, "--json").output)
    assert everything["apis"] == list(PROTOCOLS)
    assert one["apis"] == ["echo"]
    rows = mockllm("list", folder, own).output.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [["numbers", "all"], ["only-echo", "echo"]]


def test_env(mockllm):
    """`env` prints the variables of the protocol."""
    lines = mockllm("env", "--url", "http://127.0.0.1:9", "--session", "s").output.splitlines()
    assert "ECHO_BASE_URL=http://127.0.0.1:9/s/s/echo" in lines
    assert "ECHO_KEY=mock-key" in lines


def test_quirks(mockllm):
    """`quirks --api` lists those that are met in every protocol, and no other."""
    listed = json.loads(mockllm("list", "quirks", "--api", "echo", "--json").output)
    names = {each["name"] for each in listed}
    assert {"sse-crlf", "sse-cut", "sse-unicode-line-separators"} <= names
    assert names == {name for name, quirk in QUIRKS.items() if not quirk.only}
    shown = mockllm("list", "quirks", "sse-unicode-line-separators", "--api", "echo")
    assert shown.exit_code == 0, shown.output
    assert "event: line" in shown.output


def test_the_schema(mockllm, own):
    """The schema that `schema` prints takes the name wherever the loader does."""
    schema = json.loads(mockllm("schema").output)
    Draft202012Validator.check_schema(schema)
    (document,) = documents(ONLY_ECHO, "x")
    value = json_value(document.root, Findings(VOCABULARY))
    Draft202012Validator(schema).validate(value)
    assert load(own)[0].apis == ("echo",)
    (wrong,) = documents(WRONG, "x")
    assert not Draft202012Validator(schema).is_valid(json_value(wrong.root, Findings(VOCABULARY)))


CLIENT = """
import json, os, sys, urllib.request

def speak(*dialogue):
    body = {"speaker": "narrator-1", "live": True, "dialogue": dialogue, "gadgets": [
        {"title": "get", "settings": {"type": "object"}}]}
    request = urllib.request.Request(
        os.environ["ECHO_BASE_URL"] + "/v2/speak", json.dumps(body).encode(),
        {"content-type": "application/json", "x-echo-key": os.environ["ECHO_KEY"]},
    )
    with urllib.request.urlopen(request) as answer:
        lines = answer.read().decode().split("\\n")
    data = [line[6:] for line in lines if line.startswith("data: {")]
    return [json.loads(text) for text in data]

def joined(acts, kind, part=None):
    return "".join(
        act["bit"] for act in acts if act["act"] == kind and part in (None, act["part"]))

line = {"who": "human", "line": "numbers"}
acts = speak(line)
cues = [
    {"cue": act["cue"], "gadget": act["gadget"], "settings": joined(acts, "setting", act["part"])}
    for act in acts if act["act"] == "cue"
]
answer = {"who": "machine", "line": joined(acts, "line"), "cues": cues}
results = [{"who": "gadget", "cue": cue["cue"], "line": "42"} for cue in cues]
if "--mistaken" in sys.argv:
    results[1]["cue"] = results[0]["cue"]
print(joined(speak(line, answer, *results), "line"))
"""

SCENARIO = """\
scenario: numbers
match: {user: numbers}
tools: [{name: get}]
turns:
  - reply:
      - {tool: get, id: call_a, arguments: {name: a}, split: 4}
      - {tool: get, id: call_b, arguments: {name: b}, split: 4}
  - reply: {text: It is 42.}
"""


@pytest.fixture
def agent(tmp_path):
    """A client with the standard library only, and the scenario that it needs."""
    (tmp_path / "agent.py").write_text(CLIENT)
    (tmp_path / "numbers.yaml").write_text(SCENARIO)
    return tmp_path


def test_run(mockllm, agent, capfd):
    """`run` leads a client to the server by the variables of the protocol."""
    command = (sys.executable, agent / "agent.py")
    result = mockllm("run", "--scenarios", agent / "numbers.yaml", "--", *command)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "mockllm: 2 requests: 2 played\n"
    assert capfd.readouterr().out == "It is 42.\n"


def test_run_names_a_mistake(mockllm, agent):
    """The verdict of `run` names the rule of conversations that the client breaks."""
    command = (sys.executable, agent / "agent.py", "--mistaken")
    result = mockllm("run", "--scenarios", agent / "numbers.yaml", "--", *command)
    assert result.exit_code == 1
    assert "answer-each-once" in result.stderr
