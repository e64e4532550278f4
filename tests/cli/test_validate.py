"""`mockllm validate` and `mockllm schema`."""

import json

import pytest

from tests.conformance.drift.service import exchange, record
from tests.play.replay.hostile_schemas import nested

BROKEN = "scenario: a\nturns:\n  - reply: {text: hi, splt: words}\n"


def test_valid_files(mockllm, folder):
    """Valid files give a summary and exit code 0."""
    result = mockllm("validate", folder)
    assert (result.exit_code, result.stdout) == (0, "1 scenario, no problems\n")


def test_problems_have_a_location(mockllm, tmp_path):
    """Each problem is printed as file:line:column: path: message; the exit code is 1."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(BROKEN.replace("scenario: a", f"scenario: {name[0]}"))
    result = mockllm("validate", tmp_path)
    first, second, summary = result.stdout.splitlines()
    assert first.startswith(f"{tmp_path}/a.yaml:3:23: turns[0].reply")
    assert "split" in first
    assert second.startswith(f"{tmp_path}/b.yaml:3:23: ")
    assert summary == "2 problems in 2 files"
    assert result.exit_code == 1


def test_problems_as_json(mockllm, tmp_path):
    """`--json` prints a list of problems, which is empty for valid files."""
    file = tmp_path / "a.yaml"
    file.write_text(BROKEN)
    result = mockllm("validate", "--json", file)
    (problem,) = json.loads(result.stdout)
    assert (problem["file"], problem["line"], problem["column"]) == (str(file), 3, 23)
    assert problem["path"]
    assert problem["message"]
    assert result.exit_code == 1
    file.write_text(BROKEN.replace("splt", "split"))
    result = mockllm("validate", "--json", file)
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_schema(mockllm):
    """`mockllm schema` prints a JSON Schema."""
    result = mockllm("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("parameters", "arguments", "expected"),
    [
        ({"pattern": "((a{1000}){1000}){1000}"}, {"a": 1}, "would be too large"),
        (nested(400), {"a": 1}, "nested more than 100 levels deep"),
        (
            {"properties": {"a": {"pattern": "(x+x+)+y"}}},
            {"a": "x" * 20_000},
            "gave up the regular expression '(x+x+)+y'",
        ),
        ({"$ref": "http://127.0.0.1:1/x"}, {"a": 1}, "leads nowhere"),
    ],
    ids=["pattern", "depth", "search", "remote"],
)
@pytest.mark.slow
def test_schemas_that_ask_for_too_much(mockllm, tmp_path, parameters, arguments, expected):
    """The check ends with a problem that has a location."""
    file = tmp_path / "a.yaml"
    tools = json.dumps([{"name": "f", "parameters": parameters}])
    reply = json.dumps({"tool": "f", "arguments": arguments})
    file.write_text(f"scenario: a\ntools: {tools}\nturns:\n  - reply: {reply}\n")
    result = mockllm("validate", file)
    assert result.exit_code == 1
    first = result.stdout.splitlines()[0]
    assert first.startswith(f"{file}:")
    assert expected in result.stdout


def test_a_pattern_that_would_be_too_large(mockllm, tmp_path):
    """It is a problem at its place, as one that is no regular expression is."""
    file = tmp_path / "a.yaml"
    file.write_text(
        "scenario: a\nmatch: {user: {regex: '((a{1000}){1000}){1000}'}}\n"
        "turns: [{reply: {text: hi}}]\n"
    )
    result = mockllm("validate", file)
    assert result.stdout.splitlines()[0] == (
        f"{file}:2:23: match.user.regex: is a regular expression that would be too large; "
        "make its counted repeats smaller"
    )


def test_recordings_that_are_too_old(mockllm, tmp_path):
    """A warning and exit 0; with `:error` a problem and exit 1. An unknown date is reported."""

    def run(*arguments):
        result = mockllm("validate", *arguments)
        return result.exit_code, result.stdout, result.stderr

    folder = tmp_path / "recorded"
    answer = (200, "application/json", '{"choices": []}')
    request = {"model": "m", "messages": [{"role": "user", "content": "old"}]}
    record(folder, exchange("https://api.openai.com/v1/chat/completions", request, answer, at=2e9))
    file = folder / "old.1.jsonl"
    whole = file.read_text()
    assert '"at":"2033-05-18T03:33:20Z"' in whole
    assert run(folder, "--max-age", "1d") == (0, "1 scenario, no problems\n", "")
    file.write_text(whole.replace("2033", "2023"))
    code, output, errors = run(folder, "--max-age", "1d")
    assert (code, output) == (0, "1 scenario, no problems\n")
    assert errors.startswith(f"warning: {file}: was recorded on 2023-05-18, ")
    code, output, errors = run(folder, "--max-age", "2w:error")
    assert (code, errors) == (1, "")
    assert output.startswith(f"{file}:1:1: was recorded on 2023-05-18, ")
    file.write_text(whole.replace('"at":"2033-05-18T03:33:20Z",', ""))
    code, output, errors = run(folder, "--max-age", "2w:error")
    assert (code, errors) == (0, f"warning: no date is known of 1 recording: {file}\n")
    assert "is no age such as 30d" in run(folder, "--max-age", "soon")[2]
    assert run(folder)[0] == 0
