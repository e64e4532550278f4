"""A suite of the official SDK that calls more than models: recorded once, then replayed."""

from __future__ import annotations

import re

import openai  # noqa: F401 - imported once here: see conftest
import pytest

import mockllm.serve.server.recording.recorder  # noqa: F401 - see above
import mockllm_pytest.recording  # noqa: F401 - see above
from tests.plugin.routes_service import RoutesService

pytestmark = pytest.mark.slow

SUITE = """
import pytest
from openai import OpenAI

MODEL = "gpt-4o"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
def client():
    with OpenAI(max_retries=0) as client:
        yield client


def user(text):
    return [{"role": "user", "content": text}]


@pytest.mark.mockllm_recorded
def test_chat(client):
    answer = client.chat.completions.create(model=MODEL, messages=user("The capital?"))
    assert answer.choices[0].message.content == "Bern."


@pytest.mark.mockllm_recorded
def test_stream(client):
    with client.chat.completions.stream(model=MODEL, messages=user("The capital?")) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Bern."


@pytest.mark.mockllm_recorded
def test_tools(client):
    answer = client.chat.completions.create(
        model=MODEL, messages=user("The weather?"), tools=[TOOL]
    )
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"city":"Oslo"}'


@pytest.mark.mockllm_recorded
def test_embeddings(client):
    answer = client.embeddings.create(model="text-embedding-3-small", input="Hello")
    assert answer.data[0].embedding == [0.25, -0.5]


@pytest.mark.mockllm_recorded
def test_moderations(client):
    first = client.moderations.create(input="a fight")
    second = client.moderations.create(input="a walk")
    assert [first.results[0].flagged, second.results[0].flagged] == [True, False]


@pytest.mark.mockllm_recorded
def test_files(client):
    file = client.files.create(file=("a.bin", b"\\x00\\xffdata"), purpose="batch")
    assert client.files.content(file.id).read() == b"\\x00\\xffdata"


@pytest.mark.mockllm_recorded
def test_images(client):
    answer = client.images.generate(model="gpt-image-1", prompt="A mountain")
    assert answer.data[0].b64_json.startswith("iVBORw0KGgo")


@pytest.mark.mockllm_recorded
def test_models(client):
    assert [model.id for model in client.models.list()] == ["a", "b"]


@pytest.mark.mockllm_recorded
def test_transcription(client):
    answer = client.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"RIFF\\xff"))
    assert answer.text == "5 bytes of a.wav"
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in ("", "_OPENAI", "_ANTHROPIC", "_GEMINI", "_AGUI"):
        monkeypatch.delenv(f"MOCKLLM_UPSTREAM{name}", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-live-4fQ9zTk2mVx7RbN1cYp8")


def record(service, mode="once"):
    return (f"--mockllm-record={mode}", "--mockllm-upstream", service.url)


def texts(result):
    """The output without addresses and names of files, which differ from run to run."""
    return re.sub(r"\d+\.\d+s", "", result.stdout.str())


def test_nine_of_nine(project):
    """Every test of the suite is recorded once and replayed without the service: chat, a stream,
    tools, embeddings, moderations, files, images, models and audio."""
    project.makepyfile(test_suite=SUITE)
    with RoutesService() as service:
        project.runpytest_inprocess(*record(service)).assert_outcomes(passed=9)
        assert len(service.requests) == 11
        requested = list(service.requests)
        project.runpytest_inprocess(*record(service)).assert_outcomes(passed=9)
        assert service.requests == requested, "--mockllm-record=once records only once"
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=9)
    assert "no longer requested" not in texts(result)


def test_a_route_that_is_not_recorded(project):
    """A request to a route that is not in the recording fails the test, and the report shows the
    command that records it."""
    project.makepyfile(test_suite=SUITE)
    with RoutesService() as service:
        options = record(service)
        project.runpytest_inprocess("-k", "moderations", *options).assert_outcomes(passed=1)
    project.makepyfile(test_suite=SUITE.replace("a walk", "a run"))
    result = project.runpytest_inprocess("-k", "moderations")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*--mockllm-record=new_episodes*"])


def test_new_routes_are_added(project):
    """With new_episodes, only the requests that are not recorded go to the service."""
    project.makepyfile(test_suite=SUITE)
    with RoutesService() as service:
        project.runpytest_inprocess("-k", "moderations", *record(service)).assert_outcomes(passed=1)
        project.makepyfile(test_suite=SUITE.replace("a walk", "a run"))
        options = ("-k", "moderations", *record(service, "new_episodes"))
        project.runpytest_inprocess(*options).assert_outcomes(passed=1)
        assert service.requests == ["POST /v1/moderations"] * 3
    project.runpytest_inprocess("-k", "moderations").assert_outcomes(failed=1)


NOT_FOUND = """
import httpx, os, pytest

@pytest.fixture(autouse=True)
def one_line_more(mockllm_session):
    report = mockllm_session._recording.options.report
    yield
    report(LINE)

@pytest.mark.mockllm_recorded
def test_it():
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/models"
    assert httpx.get(url).status_code == 200
"""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Line('POST /x', 'neutral', 'turn 1 of a', 'a', 0, 'turn 2 of b answers it')", "turn 2"),
        ("Line('GET /y', 'skipped', 'a WebSocket is not recorded')", "a WebSocket"),
    ],
)
def test_what_will_not_replay_fails_while_recording(project, line, text):
    """An exchange that its own request does not find again, or that is not recorded, fails the
    run that records it."""
    source = f"from mockllm.record.recording.drafting.drafts import Line\n{NOT_FOUND}"
    project.makepyfile(test_suite=source.replace("LINE", line))
    with RoutesService() as service:
        result = project.runpytest_inprocess(*record(service))
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*A replay of this test will not answer 1 exchange:", f"*{text}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
