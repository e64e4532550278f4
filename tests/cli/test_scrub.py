"""`mockllm scrub`: secrets in existing files."""

import json

import pytest

from mockllm.core.http import TimedBytes
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import dump_tape, load_tape
from tests.play.tapes.making import Sent, taped

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
HIDDEN = "sk-proj-REDACTED-1" + "x" * 30

SCENARIO = f"""\
scenario: keys   # written by bob@corp.io
match: {{user: 'my key is {KEY}'}}
turns:
  - recorded: keys.1.jsonl
    reply:
      - text: |
          Your key:
          {KEY}
      - tool: login
        id: call_1
        arguments: '{{"key":"{KEY}"}}'
        split: ['{{"key":"{KEY[:11]}', '{KEY[11:]}"}}']
"""


def tape():
    """The tape of a turn whose text is the key, cut in the middle."""
    frames = [
        {"choices": [{"index": 0, "delta": {"content": one}}]} for one in (KEY[:11], KEY[11:])
    ]
    chunks = tuple(
        TimedBytes(20_000 * index, f"data: {json.dumps(frame)}\n\n".encode())
        for index, frame in enumerate(frames)
    )
    request = Sent("POST", "https://api.openai.com/v1?key=abc123DEF456", (), f'"{KEY}"'.encode())
    headers = (("content-type", "text/event-stream"),)
    return taped("chat", True, 200, headers, chunks, request=request)


@pytest.fixture
def recorded(tmp_path):
    """A folder with a scenario and its tape, full of secrets."""
    (tmp_path / "keys.yaml").write_text(SCENARIO)
    (tmp_path / "keys.1.jsonl").write_bytes(dump_tape(tape()))
    return tmp_path


def test_check_reports_and_changes_nothing(mockllm, recorded):
    """`--check` reports position and kind of each secret, not the secret, and changes nothing."""
    before = {file: file.read_bytes() for file in recorded.iterdir()}
    result = mockllm("scrub", recorded, "--check")
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert f"{recorded}/keys.yaml:1:31: e-mail address" in lines
    assert f"{recorded}/keys.yaml:2:15: API key" in lines
    assert f"{recorded}/keys.1.jsonl:1:1: URL of the request" in lines
    assert f"{recorded}/keys.1.jsonl:2:1: body of the answer" in lines
    assert lines[-1].endswith("secrets found in 2 files")
    assert KEY[:20] not in result.output
    assert before == {file: file.read_bytes() for file in recorded.iterdir()}


def test_secrets_are_replaced(mockllm, recorded):
    """Equal secrets get equal placeholders, and a second run finds nothing."""
    result = mockllm("scrub", recorded)
    assert result.exit_code == 0
    text = (recorded / "keys.yaml").read_text()
    expected = SCENARIO.replace("bob@corp.io", "hidden-1@mail.example")
    fragments, joined = expected.rpartition("        split: ")[::2]
    assert text.startswith(fragments.replace(KEY, HIDDEN))
    assert joined
    (scenario,) = load([recorded])
    assert "".join(scenario.turns[0].reply[1].split) == f'{{"key":"{HIDDEN}"}}'
    found = load_tape((recorded / "keys.1.jsonl").read_bytes(), "keys.1.jsonl").exchange
    assert found.request_body.decode() == f'"{HIDDEN}"'
    deltas = [json.loads(one.data[6:])["choices"][0]["delta"]["content"] for one in found.chunks]
    assert "".join(deltas) == HIDDEN
    assert [chunk.at for chunk in found.chunks] == [0, 20_000]
    again = mockllm("scrub", recorded, "--check")
    assert (again.exit_code, again.stdout) == (0, "no secrets in 2 files\n")


def test_new_secrets_get_new_numbers(mockllm, tmp_path):
    """A placeholder that a file already has is not used for another secret."""
    file = tmp_path / "a.json"
    file.write_text('{"to": ["hidden-1@mail.example", "eve@corp.io"]}')
    assert mockllm("scrub", file).stdout.splitlines() == [
        f"{file}:1:35: e-mail address",
        "1 secret replaced in 1 file",
    ]
    assert file.read_text() == '{"to": ["hidden-1@mail.example", "hidden-2@mail.example"]}'


def test_options_and_configuration(mockllm, tmp_path, monkeypatch):
    """Options and mockllm.toml add up."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.json"
    file.write_text('{"user": "joe", "id": "cust-1", "x": "acct-22"}')
    (tmp_path / "mockllm.toml").write_text("[redact]\njson_paths = ['$.user', '$.x']\n")
    result = mockllm("scrub", file, "--redact", r"cust-\d", "--check")
    assert result.exit_code == 1
    assert [line.split(": ", 1)[1] for line in result.stdout.splitlines()[:-1]] == [
        "JSON path",
        "pattern",
        "JSON path",
    ]
    assert mockllm("scrub", file, "--redact", "(").exit_code == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: eve@corp.io # c\n", "a: hidden-1@mail.example # c\n"),
        ('a: "x\\neve@corp.io"\n', 'a: "x\\nhidden-1@mail.example"\n'),
        ("a: 'it''s eve@corp.io'\n", "a: 'it''s hidden-1@mail.example'\n"),
        ("a: |\n  x\n  eve@corp.io\nb: 1\n", "a: |\n  x\n  hidden-1@mail.example\nb: 1\n"),
        ("a: {password: hunter2}\n", "a: {password: REDACTED-1}\n"),
        ("split: [eve@, corp.io]\n", "split: [hidden-, 1@mail.example]\n"),
        ("x: &e eve@corp.io\ny: *e\n", "x: &e hidden-1@mail.example\ny: *e\n"),
        ("no: [yaml eve@corp.io\n", "no: [yaml hidden-1@mail.example\n"),
    ],
)
def test_the_layout_of_yaml_is_kept(mockllm, tmp_path, before, after):
    """Only the secret changes: comments, quotation marks and layout are kept."""
    file = tmp_path / "a.yaml"
    file.write_text(before)
    mockllm("scrub", file)
    assert file.read_text() == after


def test_a_file_that_cannot_be_searched(mockllm, tmp_path):
    """A broken tape is reported with exit code 1."""
    file = tmp_path / "a.1.jsonl"
    file.write_text('{"mockllm-tape": 1}\n')
    result = mockllm("scrub", file)
    assert result.exit_code == 1
    assert "cannot be searched: " in result.stdout


def test_folders_are_searched_recursively(mockllm, tmp_path):
    """Folders are searched recursively, without hidden folders and other kinds of files."""
    for name in ("a.yaml", "b/c/d.har", ".git/e.yaml", "f.png"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a: eve@corp.io\n")
    result = mockllm("scrub", tmp_path, tmp_path / "a.yaml", "--check")
    assert result.stdout.splitlines()[-1] == "2 secrets found in 2 files"
