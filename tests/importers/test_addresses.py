"""Which API an exchange speaks, told by the end of its path."""

import pytest

from mockllm.core.target import NO_TARGET, Target
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.detection import json_object_of
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import detected

V1BETA = "https://generativelanguage.googleapis.com/v1beta/models"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"

SPOKEN = {
    "https://api.openai.com/v1/chat/completions": ("chat", NO_TARGET),
    "https://api.groq.com/openai/v1/chat/completions": ("chat", NO_TARGET),
    "https://openrouter.ai/api/v1/chat/completions/": ("chat", NO_TARGET),
    "https://x.openai.azure.com/openai/deployments/d%201/chat/completions?api-version=1": (
        "chat",
        Target({"deployment": "d 1"}, query={"api-version": "1"}),
    ),
    "https://api.openai.com/v1/responses": ("responses", NO_TARGET),
    "https://bedrock-mantle.us-east-1.api.aws/openai/v1/responses": ("responses", NO_TARGET),
    "https://api.anthropic.com/v1/messages?beta=true": (
        "anthropic",
        Target(query={"beta": "true"}),
    ),
    f"{VERTEX}/anthropic/models/claude:streamRawPredict": (
        "anthropic",
        Target(method="streamRawPredict"),
    ),
    f"{V1BETA}/gemini-x:streamGenerateContent?alt=sse": (
        "gemini",
        Target({"model": "gemini-x"}, "streamGenerateContent", {"alt": "sse"}),
    ),
    f"{V1BETA}/mock/m:generateContent": (
        "gemini",
        Target({"owner": "mock", "model": "m"}, "generateContent"),
    ),
    f"{VERTEX}/google/models/gemini-x:generateContent": (
        "gemini",
        Target({"publisher": "google", "model": "gemini-x"}, "generateContent"),
    ),
    "http://localhost:8000/agui/two": ("agui", Target({"scenario": "two"})),
}


def asked(url, method="POST", body=b"{}"):
    return Captured(method, url, (), body, 200, (), ())


@pytest.mark.parametrize("url", SPOKEN)
def test_what_is_spoken(url):
    """Services that speak another's API behind a prefix of their own count as what they speak."""
    name, target = SPOKEN[url]
    found = detected(asked(url))
    assert (found.protocol, found.target, found.reason) == (PROTOCOLS[name], target, "")


OTHERS = {
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-1%3A0/converse-stream": "Bedrock",
    "https://api.openai.com/v1/embeddings": "embeddings",
    f"{V1BETA}/m:batchEmbedContents": "embeddings",
    f"{V1BETA}/m:countTokens": "counts tokens",
    "https://api.anthropic.com/v1/messages/count_tokens": "counts tokens",
    "https://api.openai.com/v1/completions": "old completions",
    "https://api.openai.com/v1/images/generations": "no text",
    "https://api.openai.com/v1/threads/t/messages": "no API at /v1/threads/t/messages",
    "https://api.openai.com/v1/files": "asks no model",
    "http://localhost:11434/api/chat": "Ollama",
    "https://example.com/": "example.com has no API at /",
}


@pytest.mark.parametrize("url", OTHERS)
def test_what_is_not(url):
    """What is no exchange with a model, or over an API that is not played, is told with why."""
    found = detected(asked(url))
    assert found.protocol is None
    assert OTHERS[url] in found.reason


def test_only_posts_ask():
    """Looking something up asks no model, wherever it goes."""
    found = detected(asked("https://api.openai.com/v1/chat/completions", "GET"))
    assert (found.protocol, found.reason) == (None, "a GET asks no model")


def test_ag_ui_is_told_by_its_body():
    """An agent is run under any path; what is sent says that it is AG-UI."""
    body = b'{"threadId": "t", "runId": "r", "messages": []}'
    assert detected(asked("http://h/agent", body=body)).protocol is PROTOCOLS["agui"]
    assert detected(asked("http://h/agent", body=b"[")).protocol is None
    assert json_object_of(b"[]") is None
