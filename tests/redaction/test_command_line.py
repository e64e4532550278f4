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


def test_services_that_cannot_be_used(tmp_path):
    """A URL that is no base URL is quoted without its query and its user."""
    arguments = ["record", "--upstream", URL, "-o", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "got 'https://***@api.openai.com/v1/chat/completions?key=***'" in result.output
    assert not [one for one in ("url-user", "url-pw", "query-value") if one in result.output]
