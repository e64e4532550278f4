"""A user's project with the plugin, in which the tests run pytest."""

from __future__ import annotations

# pytester removes the modules that a run imported. A second run would then import httpcore again,
# and httpx (and httpx2 of the SDKs) would map exceptions of the first httpcore, which are no longer
# raised. So everything that the runs need is imported once, here.
import httpcore  # noqa: F401 - see above
import httpcore2  # noqa: F401 - see above
import jsonschema  # noqa: F401 - see above
import pytest
import trustme  # noqa: F401 - see above

import mockllm.serve.server.parts  # noqa: F401 - see above
import mockllm_pytest.resilience_suites
import mockllm_pytest.session_report
import mockllm_pytest.suites  # noqa: F401 - see above

INI = """
    [pytest]
    addopts = -p no:langsmith_plugin -p no:randomly -p no:cacheprovider -p no:hypothesispytest
    asyncio_default_fixture_loop_scope = function
"""

CLIENT = '''
    """A small client that finds its server as the SDKs do."""

    import os

    import httpx


    def post(*messages, **more):
        url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
        headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        body = {"model": "any", "messages": list(messages), **more}
        return httpx.post(url, json=body, headers=headers, timeout=60)


    def user(text):
        return {"role": "user", "content": text}


    def message(answer):
        return answer.json()["choices"][0]["message"]


    def reply_to(text):
        return message(post(user(text)))["content"]


    def results(call_message, *texts):
        calls = call_message["tool_calls"]
        tool_messages = [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, texts)
        ]
        return [call_message, *tool_messages]
'''

SCENARIOS = """
    scenario: greeting
    match: {user: hello}
    turns:
      - reply: {text: Hi there.}
    ---
    scenario: farewell
    match: {user: bye}
    turns:
      - reply: {text: See you.}
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A folder with a client, two scenarios and no tests yet."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "CI"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini(INI)
    pytester.makepyfile(client=CLIENT)
    pytester.makefile(".yaml", greetings=SCENARIOS)
    pytester.syspathinsert()
    return pytester


@pytest.fixture
def run(project):
    """Runs pytest on the text of a test file: `run(text, *arguments)`."""

    def run(text: str, *arguments: str):
        project.makepyfile(test_it=text)
        return project.runpytest_inprocess(*arguments)

    return run
