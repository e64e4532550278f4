"""Which service gets a request, and at which URL."""

import pytest

from mockllm.core.errors import RequestError
from mockllm.serve.server.recording.services import Services
from mockllm.wire.protocols import PROTOCOLS

OPENAI, ANTHROPIC, GOOGLE = "https://o.test", "https://a.test", "https://g.test/x"
THREE = {"chat": OPENAI, "responses": OPENAI, "anthropic": ANTHROPIC, "gemini": GOOGLE}


def services(upstreams):
    return Services(upstreams, "--upstream")


@pytest.mark.parametrize(
    ("base", "target", "url"),
    [
        ("https://h", "/v1/files?x=1", "https://h/v1/files?x=1"),
        ("https://h/", "/v1/files", "https://h/v1/files"),
        ("https://h/v1", "/v1/files", "https://h/v1/files"),
        ("https://h/api/v1", "/v1/files", "https://h/api/v1/files"),
        ("https://h/api/v1/", "/v1/files", "https://h/api/v1/files"),
        ("https://h/api/v1", "/api/v1/chat/completions", "https://h/api/v1/chat/completions"),
        ("https://h/openai", "/v1/files", "https://h/openai/v1/files"),
        ("https://h/openai", "/openai/deployments/d/x", "https://h/openai/deployments/d/x"),
        ("https://h/v1beta", "/v1beta/models/m:embed", "https://h/v1beta/models/m:embed"),
        ("https://h/v1", "/v1beta/files", "https://h/v1/v1beta/files"),
        ("https://h/v1", "/v10/files", "https://h/v1/v10/files"),
        ("https://v1", "/v1/files", "https://v1/v1/files"),
        ("https://h/files", "/files/1", "https://h/files/1"),
    ],
)
def test_the_url_of_a_request(base, target, url):
    """The target follows the base URL; what both have, a version or a whole prefix, is there
    once."""
    assert services({"chat": base}).url(PROTOCOLS["chat"], target) == url


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/agui", "https://h/my/agent"),
        ("/agui?x=1", "https://h/my/agent?x=1"),
        ("/agui/name", "https://h/my/agent/name"),
        ("/health", "https://h/my/agent/health"),
        ("/aguilar", "https://h/my/agent/aguilar"),
    ],
)
def test_the_url_of_an_agent(target, url):
    """An agent has one address: the path that stands for it here is left out, and no other."""
    assert services({"agui": "https://h/my/agent"}).url(PROTOCOLS["agui"], target) == url


@pytest.mark.parametrize("path", ["/v1/embeddings", "/odd", "/v1beta/files"])
@pytest.mark.parametrize("names", [["anthropic"], ["agui"], [*PROTOCOLS], ["chat", "responses"]])
def test_the_only_service_gets_everything(names, path):
    """With one service there is nothing to decide, whatever APIs it is for."""
    found = services(dict.fromkeys(names, OPENAI)).find(path, ())
    assert found.name in names


def test_without_services_none_is_found():
    """No service gets a request where there is none."""
    assert services({}).find("/v1/files", ()) is None


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/v1/files", ["x-api-key", "anthropic-version"], "anthropic"),
        ("/v1/files", ["authorization", "anthropic-version"], "anthropic"),
        ("/v1/embeddings", ["authorization"], "chat"),
        ("/v1/embeddings", ["x-goog-api-key"], "gemini"),
        ("/v1beta/files", [], "gemini"),
        ("/v1beta/files", ["authorization"], "gemini"),
        ("/x/upload", ["authorization"], "gemini"),
    ],
)
def test_headers_and_paths_decide(path, headers, name):
    """Of several services the one is found whose URL has the beginning of the path, whose API has
    a header of its own, or a beginning of paths of its own; a header that many APIs share decides
    last."""
    assert services(THREE).find(path, headers).name == name


@pytest.mark.parametrize("path", ["/v1/embeddings", "/odd"])
def test_a_request_that_may_be_for_several(path):
    """The error names the services, without secrets in their URLs, and what to do."""
    found = services(THREE | {"anthropic": "https://me:secret-pass@a.test"})
    with pytest.raises(RequestError) as caught:
        found.find(path, ())
    message = caught.value.message
    assert message.startswith(f"{path} belongs to none of the APIs here")
    assert "https://***@a.test, https://g.test/x, https://o.test" in message
    assert "--upstream URL" in message
    assert "secret-pass" not in message
    assert caught.value.status == 502
