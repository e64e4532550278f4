"""`mockllm validate` and `mockllm schema`."""

import json

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
