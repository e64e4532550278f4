"""Recordings of coding agents: the words of the user count, not what the agent puts around them."""

from __future__ import annotations

import json

import pytest

from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import load_tape
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from tests.record.importers.test_batch import cassette
from tests.record.recording.agent_machines import (
    ADA,
    AGENTS,
    BOB,
    PROMPT,
    Machine,
    ask,
    body_of,
    exchange,
    play,
    record,
    title_of,
)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recording_has_the_words_of_the_user(tmp_path, agent):
    """In its name and its condition; an address in a reminder makes no regular expression."""
    folder = record(tmp_path, exchange(agent, body_of(agent, ADA), "Done."))
    (scenario,) = load(folder)
    assert scenario.match.user.op == "equals"
    assert scenario.match.user.value == PROMPT
    assert scenario.match.ignore == ("cwd", "home", "tmp", "hostname", "user", "git")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recording_answers_on_another_machine(tmp_path, agent):
    """Another folder, another home, another day, another commit; another prompt gets nothing."""
    player = play(record(tmp_path, exchange(agent, body_of(agent, ADA), "Done.")))
    assert ask(player, agent, body_of(agent, BOB)).played.outcome == "played"
    other = ask(player, agent, body_of(agent, BOB, prompt="delete all"))
    assert other.played.outcome == "unmatched"
    (problem,) = other.played.problems
    assert "user said 'delete all'" in problem
    assert f"the last user message must be {PROMPT!r}, got 'delete all'" in problem
    assert "<system-reminder>" not in problem


@pytest.mark.parametrize("first", ["title", "main"])
def test_a_title_never_answers_the_agent(tmp_path, first):
    """opencode asks for a title with the same words. Each of the two recordings has a condition
    that is short and holds on another day, and what meets neither gets no answer."""
    both = {
        "title": exchange("opencode", title_of(), "Hello file"),
        "main": exchange("opencode", body_of("opencode", ADA), "Done."),
    }
    folder = record(tmp_path, both.pop(first), *both.values())
    texts = [scenario.match for scenario in load(folder)]
    assert {(match.tools, match.system, match.negated) != ((), None, None) for match in texts} == {
        True
    }
    assert "2026" not in "".join(file.read_text() for file in folder.glob("*.yaml"))
    player = play(folder)
    assert b"Done." in b"".join(ask(player, "opencode", body_of("opencode", BOB)).answer.data)
    assert b"Hello" in b"".join(ask(player, "opencode", title_of()).answer.data)
    neither = body_of("opencode", BOB)
    neither["tools"][0]["function"]["name"] = "other"
    neither["messages"][0]["content"] = "Be kind."
    assert ask(player, "opencode", neither).played.outcome == "unmatched"


def test_nothing_that_changes_tells_recordings_apart(tmp_path):
    """No id of a turn, no time: two runs of one prompt are played in their order."""

    def run(number):
        body = body_of("codex", ADA)
        body["client_metadata"] |= {
            "turn_id": f"01a2266d-6c2f-7c31-b97c-986e25cd9ff{number}",
            "turn_started_at_unix_ms": 1795941035068 + number,
            "label": f"run of 2026-11-2{number}",
        }
        return body

    exchanges = [exchange("codex", run(n), f"Answer {n}.") for n in (1, 2)]
    folder = record(tmp_path, *exchanges)
    for scenario in load(folder):
        match = scenario.match
        assert (match.body, match.system, match.tools) == (None, None, ())


CALLS = {
    "claude": "{tool: Write, id: toolu_1, arguments: {file_path: %s/hello.txt}, split: 4}",
    "codex": "{tool: exec_command, id: call_1, arguments: {cmd: cat %s/a.txt}, split: 4}",
    "gemini": "{tool: write_file, arguments: {file_path: %s/hello.txt}}",
    "opencode": "{tool: write, id: call_1, arguments: {filePath: %s/hello.txt}, split: 4}",
}


def texts_of(folder):
    return {file.name: file.read_text() for file in folder.iterdir() if file.suffix != ".lock"}


@pytest.mark.parametrize("agent", AGENTS)
def test_folders_are_placeholders_and_are_filled_in(tmp_path, agent):
    """In YAML and tape, in request and answer, also where a stream cuts them; the tape still plays,
    with the folders of the machine that asks."""
    reply = f"[It is in {ADA.cwd}., {CALLS[agent] % ADA.cwd}]"
    folder = record(tmp_path, exchange(agent, body_of(agent, ADA), reply))
    for name, text in texts_of(folder).items():
        assert ADA.cwd not in text, name
        assert ADA.home not in text, name
        assert "Ada" not in text, name
        assert "<cwd>" in text, name
    player = play(folder)
    again = ask(player, agent, body_of(agent, ADA))
    assert (again.played.recorded, again.played.changes) == ("exact", ())
    elsewhere = ask(player, agent, body_of(agent, BOB))
    assert (elsewhere.played.recorded, elsewhere.played.changes) == ("exact", ())
    (tape,) = folder.glob("*.jsonl")
    kept = load_tape(tape.read_bytes(), "").exchange
    recorded = ask(player, agent, json.loads(kept.request_body))  # as the recorder looks for it
    assert (recorded.played.recorded, recorded.played.changes) == ("exact", ())
    assert b"<cwd>" in b"".join(recorded.answer.data)
    told = b"".join(elsewhere.answer.data)
    assert told.count(BOB.cwd.encode()) >= 2
    assert ADA.cwd.encode() not in told
    assert b"<cwd>" not in told


def test_a_folder_that_cannot_stand_in_the_tape_is_played_from_the_scenario(tmp_path):
    """A backslash is written as two in JSON, and as four in the JSON of arguments."""
    reply = f"[It is in {ADA.cwd}., {CALLS['claude'] % ADA.cwd}]"
    player = play(record(tmp_path, exchange("claude", body_of("claude", ADA), reply)))
    answered = ask(player, "claude", body_of("claude", Machine(cwd="C:\\shop", home="C:\\u")))
    assert answered.played.recorded == "machine"
    assert b"C:\\\\shop" in b"".join(answered.answer.data)


def test_a_folder_that_is_not_stated_is_no_answer(tmp_path):
    """A reply that has it is refused, and not played as it is."""
    reply = f"It is in {ADA.home}/notes."
    folder = record(tmp_path, exchange("claude", body_of("claude", ADA), reply))
    body = body_of("claude", BOB)
    body["system"] = "x-anthropic-billing-header: cc_version=2.1.332.42f;"
    answered = ask(play(folder), "claude", body)
    assert answered.played.outcome == "invalid"
    assert "it has <home>, which this request does not state" in answered.played.problems[0]


RESULTS = {
    "claude": (
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Write",
         "input": {"file_path": "a"}}]},
        lambda failed: {"role": "user", "content": [{"type": "tool_result", "is_error": failed,
         "tool_use_id": "toolu_1", "content": "Exit code 1" if failed else "done"}]},
    ),
    "codex": (
        {"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": "{}"},
        lambda failed: {"type": "function_call_output", "call_id": "call_1",
         "output": f"Chunk ID: 1a\nProcess exited with code {int(failed)}\nOutput:\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("agent", RESULTS)
def test_a_tool_that_fails_now_is_said(tmp_path, agent):
    """A replay whose command fails is no success because its turns were played."""
    call, result = RESULTS[agent]
    first = exchange(agent, body_of(agent, ADA), CALLS[agent] % ADA.cwd)
    second = exchange(agent, body_of(agent, ADA, call, result(False)), "Done.")
    player = play(record(tmp_path, first, second))
    good = ask(player, agent, body_of(agent, BOB, call, result(False)))
    assert good.played.changes == ()
    bad = ask(player, agent, body_of(agent, BOB, call, result(True)))
    name = "toolu_1" if agent == "claude" else "call_1"
    assert bad.played.changes[0].startswith(f"the result of {name} is a failure, and was none: ")


def test_a_secret_has_one_placeholder_in_all_turns(tmp_path):
    """Though the body has another secret before it in one turn, and after it in the next; a call
    that has one is a warning."""
    file, other = "/secret/plan.txt", "key-4711"
    call, result = RESULTS["claude"]
    call = json.loads(json.dumps(call).replace('"a"', f'"{file}"'))
    first = body_of("claude", ADA, prompt="read the plan") | {"metadata": {"user_id": other}}
    second = body_of("claude", ADA, call, result(False), prompt="read the plan")
    second |= {"metadata": {"user_id": other}}
    reply = "{tool: %s, id: %s, arguments: {file_path: /secret/plan.txt}}"
    exchanges = [
        exchange("claude", first, reply % ("Write", "toolu_1")),
        exchange("claude", second, reply % ("Write", "toolu_2")),
    ]
    redactor = Redactor(Rules(patterns=(r"/secret/[\w.]+", r"key-\d+")))
    file = cassette(tmp_path / "it.yaml", *exchanges)
    lines = [one.line for one in import_files([file], Folder(tmp_path / "out"), redactor=redactor)]
    warning = "warning: the arguments of Write have a placeholder, with which a replay runs it"
    assert all(warning in line.description for line in lines)
    (scenario,) = load(tmp_path / "out")
    calls = [part.arguments for turn in scenario.turns for part in turn.reply]
    assert calls[0] == calls[1]
    assert "REDACTED" in calls[0]


def test_a_request_that_names_no_folder_is_said(tmp_path):
    """It continues an answer by its id, and has no history to read the folder from."""
    first = exchange("codex", body_of("codex", ADA), "Hi.")
    id = json.loads(first.body.split(b"data: ")[1].splitlines()[0])["response"]["id"]
    body = {"model": "gpt-6", "stream": True, "previous_response_id": id, "input": "again"}
    second = exchange("codex", body, f"It is in {ADA.cwd}.")
    file = cassette(tmp_path / "it.yaml", first, second)
    results = import_files([file], Folder(tmp_path / "out"))
    notes = ["names no folder" in one.line.description for one in results]
    assert notes == [False, True]
