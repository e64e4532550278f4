"""llm-comply, a public tester of services, finds no fault in any of the formats that it knows.

https://pypi.org/project/llm-comply/; it sends its own requests and compares answers with the
published schemas of OpenAI, Open Responses, Anthropic and Google.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

import pytest

from mockllm import ServerOptions, ServerThread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_comply") is None,
        reason="llm-comply is not installed: pip install --group test",
    ),
]

_RUN = [sys.executable, "-c", "from llm_comply.cli import main; main()", "run", "--json"]
_ANTHROPIC = ["--auth-header", "x-api-key", "--no-bearer", "-H", "anthropic-version:2023-06-01"]
_FORMATS = {
    "responses": ("open-responses", "/v1", "gpt-5", []),
    "chat": ("openai-chat", "/v1", "gpt-5", []),
    "anthropic": ("anthropic", "/v1", "claude-sonnet-4-5", _ANTHROPIC),
    "gemini": ("google-genai", "", "gemini-2.5-flash", []),
}
_CASES = [
    *(pytest.param(*case[:3], True, case[3], id=name) for name, case in _FORMATS.items()),
    *(
        pytest.param(*case[:3], False, case[3], id=f"{name}-lenient")
        for name, case in _FORMATS.items()
    ),
    # Without options it leaves out a header that the service demands.
    pytest.param(*_FORMATS["anthropic"][:3], False, [], id="anthropic-without-version"),
]
_UNRECORDED = re.compile(
    "usage: 'server_tool_use' is a required property|'container' is a required property|"
    r"^content\.\d+: \{'type': 'text', 'text': '[^']*'\} is not valid under any"
)
"""What the published schema of Anthropic demands and no recorded answer has, which clients refuse:
`container: null`, and `citations: null` in each text (see tests/wire/recorded_fields.txt)."""


@pytest.mark.parametrize(("format", "path", "model", "strict", "options"), _CASES)
def test_llm_comply_finds_no_fault(
    format: str, path: str, model: str, strict: bool, options: list[str]
) -> None:
    """Every case of the tester passes, with answers made from its requests."""
    with ServerThread([], ServerOptions(fallback=True, strict=strict)) as server:
        where = ["--format", format, "-u", f"{server.url}{path}", "-k", "key", "-m", model]
        run = subprocess.run(
            [*_RUN, *where, *options], capture_output=True, text=True, timeout=120, check=False
        )
    report = json.loads(run.stdout)
    assert report["summary"]["total"] > 5
    assert report["summary"]["skipped"] == 0
    faults = {
        result["id"]: faults
        for result in report["results"]
        if result["status"] != "passed"
        and (faults := [error for error in result["errors"] if not _UNRECORDED.search(error)])
    }
    assert faults == {}
