"""Output lines that never block the server, and the environment of clients."""

import os

import pytest

from mockllm.cli.serving.server_log import LineOutput, ServerLog
from mockllm.play.replay.loading import load
from mockllm.serve.server.app import MockServer
from mockllm.wire.protocols.environment import (
    BaseURL,
    client_base_urls,
    client_environment,
    environment_on_request,
)


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def read_all(reader):
    data = b""
    try:
        while data_read := os.read(reader, 1 << 16):
            data += data_read
    except BlockingIOError:
        pass
    return data


def test_lines_are_written_at_once(pipe):
    """A written line can be read at once, also a line longer than PIPE_BUF."""
    reader, writer = pipe
    output = LineOutput(writer)
    output.line("über")
    output.line("x" * 20_000)
    assert read_all(reader) == "über\n".encode() + b"x" * 20_000 + b"\n"


def test_a_full_pipe_does_not_block(pipe):
    """A full pipe does not block; the number of lost lines is written once there is room."""
    reader, writer = pipe
    output = LineOutput(writer)
    for number in range(30_000):
        output.line(f"{number:>99}")
    text = b""
    while not text.endswith(b"later\n"):
        text += read_all(reader)
        output.line("later")
    lines = text.decode().splitlines()
    assert [int(line) for line in lines[:5000]] == list(range(5000))
    (lost_line,) = (line for line in lines if "lost" in line)
    kept = sum(line.strip().isdigit() for line in lines)
    assert int(lost_line.split()[0][1:]) == 30_000 - kept
    assert lines[-1] == "later"


def test_a_closed_reader_is_no_error():
    """Writing after the reader has closed the pipe raises nothing."""
    reader, writer = os.pipe()
    output = LineOutput(writer)
    os.close(reader)
    output.line("one")
    output.line("two")
    os.close(writer)


def test_many_scenarios_are_cut_short(pipe, shipped):
    """The list of served scenarios ends after twenty, with the number of the rest."""
    reader, writer = pipe
    scenarios = load([shipped])
    ServerLog(output=LineOutput(writer)).serving(MockServer(scenarios))
    lines = read_all(reader).decode().splitlines()
    assert lines[1] == f"Serving {len(scenarios)} scenarios:"
    assert lines[2].startswith(f"  {scenarios[0].name} ")
    assert lines[22] == f"  ... and {len(scenarios) - 20} more (mockllm list shows all)"


URLS = {
    "chat": "http://h:1/v1",
    "responses": "http://h:1/v1",
    "anthropic": "http://h:1",
    "gemini": "http://h:1",
    "agui": "http://h:1/agui",
    "bedrock": "http://h:1",
}


def test_variables_of_the_sdks():
    """Each SDK's variable has its base URL, without a version where the SDK adds it."""
    assert client_environment(URLS) == {
        "OPENAI_BASE_URL": "http://h:1/v1",
        "ANTHROPIC_BASE_URL": "http://h:1",
        "ANTHROPIC_BEDROCK_BASE_URL": "http://h:1",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://h:1",
        "GOOGLE_GEMINI_BASE_URL": "http://h:1",
        "OPENAI_API_KEY": "mock-key",
        "ANTHROPIC_API_KEY": "mock-key",
        "GEMINI_API_KEY": "mock-key",
        "GOOGLE_API_KEY": "mock-key",
        "AWS_ACCESS_KEY_ID": "mock-key",
        "AWS_SECRET_ACCESS_KEY": "mock-key",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
    }


def test_the_variables_of_azure_stand_apart():
    """Endpoint and key together, and the version that its client needs: the module `openai` cannot
    choose between these and OPENAI_API_KEY."""
    assert environment_on_request("azure", URLS) == {
        "AZURE_OPENAI_ENDPOINT": "http://h:1",
        "AZURE_OPENAI_API_KEY": "mock-key",
        "OPENAI_API_VERSION": "2024-10-21",
    }


def test_only_served_apis_have_variables():
    """Only served APIs have variables; an API without a variable still has a base URL."""
    chat = client_environment({"chat": URLS["chat"]})
    assert set(chat) == {"OPENAI_BASE_URL", "OPENAI_API_KEY"}
    assert client_base_urls({"agui": URLS["agui"]}) == (BaseURL("", URLS["agui"], ("agui",)),)
