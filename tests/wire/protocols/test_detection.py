"""Detection: the protocol of a recorded exchange, by the end of its path."""

from mockllm.core.http import NO_TARGET, Target
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.route_matching import path_target, route_pattern
from mockllm.wire.protocols.values import json_object
from tests.cases import for_all

V1BETA = "https://generativelanguage.googleapis.com/v1beta/models"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"

BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model"

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
        Target({"model": "claude"}, "streamRawPredict"),
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
    "https://generativelanguage.googleapis.com/v1beta/interactions": ("interactions", NO_TARGET),
    "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/interactions": (
        "interactions",
        NO_TARGET,
    ),
    "https://api.openai.com/v1/completions": ("completions", NO_TARGET),
    "https://x.openai.azure.com/openai/deployments/d/completions": (
        "completions",
        Target({"deployment": "d"}),
    ),
    "https://api.cohere.com/v2/chat": ("cohere", NO_TARGET),
    f"{BEDROCK}/a.b-1%3A0/converse-stream": (
        "bedrock",
        Target({"model": "a.b-1:0", "action": "converse-stream"}),
    ),
    # A colon and a slash may be quoted, or not.
    f"{BEDROCK}/arn:aws:bedrock:eu:1:inference-profile/eu.b/converse": (
        "bedrock",
        Target(
            {"model": "arn:aws:bedrock:eu:1:inference-profile/eu.b", "action": "converse"},
            "inference-profile/eu.b/converse",
        ),
    ),
    f"{BEDROCK}/arn%3Aaws%3Abedrock%3Aeu%3A1%3Ainference-profile%2Feu.b/converse": (
        "bedrock",
        Target({"model": "arn:aws:bedrock:eu:1:inference-profile/eu.b", "action": "converse"}),
    ),
    f"{BEDROCK}/eu.anthropic.claude/invoke-with-response-stream": (
        "anthropic",
        Target({"model": "eu.anthropic.claude", "action": "invoke-with-response-stream"}),
    ),
    "http://localhost:8000/agui/two": ("agui", Target({"scenario": "two"})),
}


def captured(url, method="POST", body=b"{}"):
    return Captured(method, url, (), body, 200, (), ())


@for_all("url", SPOKEN)
def test_detected_protocols(url):
    """Services with another's API behind a path prefix of their own are detected as that API."""
    name, target = SPOKEN[url]
    found = detect_api(captured(url))
    assert (found.protocol, found.target, found.reason) == (PROTOCOLS[name], target, "")


OTHERS = {
    f"{BEDROCK}/amazon.titan-text-v1/invoke": "InvokeModel of Amazon Bedrock",
    f"{BEDROCK}/a.b/count-tokens": "it counts tokens",
    "https://api.openai.com/v1/embeddings": "embeddings",
    f"{V1BETA}/m:batchEmbedContents": "embeddings",
    f"{V1BETA}/m:countTokens": "it counts tokens",
    "https://api.anthropic.com/v1/messages/count_tokens": "it counts tokens",
    "https://api.mistral.ai/v1/fim/completions": "no known API",
    "https://api.cohere.com/v1/chat": "Cohere's first chat API",
    "https://api.openai.com/v1/images/generations": "no text",
    "https://api.openai.com/v1/threads/t/messages": "of a service beside the models",
    "https://api.openai.com/v1/files": "calls no model",
    "http://localhost:11434/api/embed": "embeddings",
    "https://example.com/": "example.com has no known API at /",
}


@for_all("url", OTHERS)
def test_undetected_exchanges(url):
    """An exchange without a model, or over an unsupported API, is skipped with a reason."""
    found = detect_api(captured(url))
    assert found.protocol is None
    assert OTHERS[url] in found.reason


def test_only_posts_are_requests_to_a_model():
    """A lookup is never a request to a model."""
    found = detect_api(captured("https://api.openai.com/v1/chat/completions", "GET"))
    assert (found.protocol, found.reason) == (None, "a GET request calls no model")


def test_ag_ui_is_detected_by_its_body():
    """Agents have no fixed path; the body shows that a request is AG-UI."""
    body = b'{"threadId": "t", "runId": "r", "messages": []}'
    assert detect_api(captured("http://h/agent", body=body)).protocol is PROTOCOLS["agui"]
    assert detect_api(captured("http://h/agent", body=b"[")).protocol is None
    assert json_object(b"[]") is None


@for_all(
    ("path", "segments"),
    [
        ("/model/a%3A0/converse", {"model": "a:0", "action": "converse"}),
        ("/model/a/converse-stream", {"model": "a", "action": "converse-stream"}),
        ("/model/a/count-tokens", None),
    ],
)
def test_a_segment_may_be_one_of_some_words(path: str, segments: dict[str, str] | None) -> None:
    match = route_pattern("/model/{model}/{action:converse|converse-stream}").fullmatch(path)
    assert (match and path_target(match).segments) == segments
