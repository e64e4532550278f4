"""Commands print URLs without their secrets."""

import json

import pytest
from click.testing import CliRunner

from mockllm.cli import main

URL = "https://url-user:url-pw@api.openai.com/v1/chat/completions?key=query-value"


def archive(response):
    """An HTTP archive with one entry."""
    request = {"method": "POST", "url": URL, "headers": []}
    return {"log": {"entries": [{"request": request, "response": response}]}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("blocked.har", archive({"status": 0, "_error": "net::ERR_FAILED"})),
        ("bodiless.har", archive({"status": 200, "content": {}})),
        (
            "broken.har",
            archive({"status": 200, "content": {"text": "-", "encoding": "base64"}, "headers": []}),
        ),
        (
            "broken.yaml",
            {
                "version": 1,
                "interactions": [
                    {
                        "request": {"method": "POST", "uri": URL, "body": None, "headers": {}},
                        "response": {"status": {"code": 200}, "body": {"base64_string": "-"}},
                    }
                ],
            },
        ),
    ],
)
def test_entries_that_cannot_be_read(tmp_path, name, content):
    """An entry that cannot be read is reported with its URL, the query and the user masked."""
    file = tmp_path / name
    file.write_text(json.dumps(content))
    result = CliRunner().invoke(main, ["import", str(file), "-o", str(tmp_path / "out")])
    assert "POST https://***@api.openai.com/v1/chat/completions?key=*** -> skipped" in result.stdout
    assert not [one for one in ("url-user", "url-pw", "query-value") if one in result.output]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_names_of_files_and_paths(tmp_path, options):
    """The name of a cassette and the path of a URL are redacted in what is written and printed."""
    key = "sk-proj-" + "Ab3dEf6hIj" * 4
    request = {
        "method": "GET",
        "uri": "https://api.openai.com/v1/files/carol@corp.io",
        "headers": {},
        "body": "",
    }
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "x"}}
    cassette = {"version": 1, "interactions": [{"request": request, "response": response}]}
    file = tmp_path / f"test_alice@corp.io_{key}.yaml"
    file.write_text(json.dumps(cassette))
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["import", str(file), "-o", str(out), *options])
    assert "files/***" in result.output
    written = [str(path.relative_to(out)) + path.read_text() for path in out.iterdir()]
    assert written
    for secret in ("alice@", "carol@", key):
        assert secret not in result.output
        assert not [text for text in written if secret in text]


def test_services_that_cannot_be_used(tmp_path):
    """A URL that is no base URL is quoted without its query and its user."""
    arguments = ["record", "--upstream", URL, "-o", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "got 'https://***@api.openai.com/v1/chat/completions?key=***'" in result.output
    assert not [one for one in ("url-user", "url-pw", "query-value") if one in result.output]


def test_an_import_with_a_pattern_that_takes_too_long(tmp_path, monkeypatch):
    """What could not be searched is not written; its line says why."""
    monkeypatch.setattr("mockllm.core.patterns.LIMIT", 0.02)
    answer = {"status": 200, "content": {"text": "x" * 3000}, "headers": []}
    (tmp_path / "a.har").write_text(json.dumps(archive(answer)))
    options = ["-o", str(tmp_path / "out"), "--redact", "(x+x+)+y"]
    result = CliRunner().invoke(main, ["import", str(tmp_path / "a.har"), *options])
    assert "-> skipped: it is not known which secrets it has" in result.stdout
    assert not [path for path in tmp_path.rglob("out/**/*") if "x" * 3000 in path.read_text()]


@pytest.mark.parametrize("command", ["import", "scrub"])
@pytest.mark.parametrize("option", ["--redact", "keep"])
def test_a_pattern_that_cannot_be_bounded(tmp_path, command, option):
    """It is refused before anything is read."""
    pattern = "((a{1000}){1000}){1000}"
    config = tmp_path / "mockllm.toml"
    config.write_text(f"[redact]\nkeep = ['/{pattern}/']\n" if option == "keep" else "")
    words = ["--redact", pattern] if option == "--redact" else []
    where = ["-o", str(tmp_path / "out")] if command == "import" else []
    result = CliRunner().invoke(
        main, ["--config", str(config), command, str(tmp_path), *where, *words]
    )
    assert result.exit_code == 2
    assert f"{option}: '{pattern}' is a regular expression that would be too large" in result.output
