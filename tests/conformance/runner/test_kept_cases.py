"""Compiled cases on the disk, and cases and answers as files."""

import io
import json
import pickle
from dataclasses import replace

import pytest

from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Policy, examine
from mockllm.checking.cases.compile import case
from mockllm.conformance import kept_cases as module
from mockllm.conformance.case_files import FileRunner, write_cases
from mockllm.conformance.case_names import name_of
from mockllm.conformance.kept_cases import cache_folder, kept_cases
from mockllm.conformance.messages import as_json
from mockllm.errors import UsageError
from mockllm.quirks.samples import SAMPLES


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MOCKLLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cases"


@pytest.fixture
def two():
    return [SAMPLES["sample-call"], SAMPLES["sample-text"]]


def test_the_second_time_the_same_cases_are_read(cache, two):
    """Cases, their plain forms and their events are those that were compiled."""
    first = kept_cases("chat", two, variations=2, quirks=False)
    assert len(list(cache.glob("*.cases"))) == 1
    second = kept_cases("chat", two, variations=2, quirks=False)
    assert [one.name for one in second] == [one.name for one in first]
    assert [one.answer for one in second] == [one.answer for one in first]
    assert [one.expected for one in second] == [one.expected for one in first]
    assert [one.payloads for one in second] == [one.payloads for one in first]
    varied = [one for one in second if one.plain is not None]
    assert varied
    assert all(any(one.plain is plain for plain in second) for one in varied)
    assert examine(lambda: ReferenceBytes("chat"), second, level="bytes").good


def test_other_arguments_have_another_file(cache, two):
    kept_cases("chat", two, variations=0, quirks=False)
    kept_cases("chat", two, variations=1, quirks=False)
    kept_cases("chat", two[:1], variations=1, quirks=False)
    kept_cases("gemini", two, variations=0, quirks=False)
    assert len(list(cache.glob("*.cases"))) == 4


def test_changed_code_compiles_again(cache, two, monkeypatch):
    kept_cases("chat", two, variations=0, quirks=False)
    monkeypatch.setattr(module, "_source", lambda: [("another.py", 1, 1)])
    kept_cases("chat", two, variations=0, quirks=False)
    assert len(list(cache.glob("*.cases"))) == 2


@pytest.mark.parametrize("damage", [b"", b"no pickle", pickle.dumps({"not": "a list"})])
def test_a_damaged_file_is_compiled_again_and_reported(cache, two, damage):
    kept_cases("chat", two, variations=0, quirks=False)
    (path,) = cache.glob("*.cases")
    path.write_bytes(damage)
    lines = []
    found = kept_cases("chat", two, variations=0, quirks=False, report=lines.append)
    assert len(found) == 2
    assert len(lines) == 1
    assert str(path) in lines[0]
    assert kept_cases("chat", two, variations=0, quirks=False, report=lines.append)
    assert len(lines) == 1


def test_a_changed_byte_is_no_changed_stream(cache, two):
    kept_cases("chat", two, variations=0, quirks=False)
    (path,) = cache.glob("*.cases")
    path.write_bytes(path.read_bytes().replace(b"chat.completion", b"chat.completiom"))
    lines = []
    found = kept_cases("chat", two, variations=0, quirks=False, report=lines.append)
    assert b"completiom" not in b"".join(found[0].chunks)
    assert len(lines) == 1


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch, two):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOCKLLM_CACHE", str(tmp_path / "file"))
    lines = []
    assert len(kept_cases("chat", two, variations=0, quirks=False, report=lines.append)) == 2
    assert any("cannot be kept" in line for line in lines)


def test_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MOCKLLM_CACHE", "")
    assert cache_folder() is None
    monkeypatch.delenv("MOCKLLM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "mockllm" / "cases"


def test_large_files_make_room(cache, two, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 1)
    kept_cases("chat", two, variations=0, quirks=False)
    kept_cases("chat", two[:1], variations=0, quirks=False)
    assert len(list(cache.glob("*.cases"))) == 1


# Cases and answers as files


def emitted(found, level):
    stream = io.BytesIO()
    counts = write_cases(found, "chat", level, stream)
    return counts, [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def samples():
    return [case(one, "chat") for one in SAMPLES.values() if one.plays_over("chat")]


def answers(samples, tmp_path, change=lambda lines: lines):
    lines = [{"mockllm": 1, "client": {"name": "phone"}}]
    lines += [{"id": n, **as_json(one.expected)} for n, one in enumerate(samples, 1)]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))
    return path


def test_cases_as_lines(samples):
    counts, lines = emitted(samples, "bytes")
    assert counts == (len(samples), [])
    assert lines[0] == {"mockllm": 1, "api": "chat", "level": "bytes"}
    assert [line["id"] for line in lines[1:]] == list(range(1, len(samples) + 1))


def test_a_file_of_answers_is_judged(samples, tmp_path):
    whole = [
        one
        for one in samples
        if all(isinstance(c.arguments, dict) for c in one.expected.tool_calls)
    ]
    runner = FileRunner(answers(whole, tmp_path), whole)
    assert runner.hello.client.name == "phone"
    report = runner.examine(None, Policy())
    assert report.runs == len(whole)
    assert report.good
    assert runner.missing == ()


def test_missing_answers_are_counted(samples, tmp_path):
    runner = FileRunner(answers(samples, tmp_path, lambda lines: lines[:-2]), samples)
    assert runner.missing == tuple(one.name for one in samples[-2:])
    assert runner.examine(None, Policy()).runs == len(samples) - 2


def test_plain_forms_are_written_and_excuse_their_quirks(tmp_path):
    """A client that loses all text loses it in the plain form, too: the quirk adds nothing."""
    quirk = case(SAMPLES["sample-text"], "chat", quirk="sse-crlf")
    counts, lines = emitted([quirk], "bytes")
    assert counts == (2, [])
    assert [line["case"] for line in lines[1:]] == [name_of(quirk), name_of(quirk.plain)]
    without = {"id": 1, **as_json(replace(quirk.expected, text=""))}
    both = answers([], tmp_path, lambda lines: [*lines, without, {**without, "id": 2}])
    runner = FileRunner(both, [quirk])
    assert [one.case.name for one in runner.examine(None, Policy()).failures] == [quirk.plain.name]
    assert runner.missing == ()
    one = FileRunner(answers([], tmp_path, lambda lines: [*lines, without]), [quirk])
    assert one.missing == (quirk.plain.name,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, {"id": []}], r"id: \[\] is none of the .* cases"),
        (lambda lines: lines[:0], "the first line must be the hello"),
        (lambda lines: lines[1:], "answers.jsonl:1: mockllm: this mockllm speaks version 1"),
        (lambda lines: [*lines, lines[-1]], "there are two answers to chat/"),
        (lambda lines: [*lines, {"id": 10**6}], "is none of the .* cases"),
        (lambda lines: [*lines, ["x"]], "a line is no JSON object"),
    ],
)
def test_a_file_that_is_wrong(samples, tmp_path, change, message):
    with pytest.raises(UsageError, match=message):
        FileRunner(answers(samples, tmp_path, change), samples)
