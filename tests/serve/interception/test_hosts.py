"""Which hosts are intercepted."""

import pytest

from mockllm.core.errors import UsageError
from mockllm.serve.interception.hosts import Hosts, hosts_from
from tests.cases import for_all


@for_all(
    ("named", "host", "port", "expected"),
    [
        ((), "api.openai.com", 443, True),
        ((), "API.OpenAI.com.", 443, True),
        ((), "mine.openai.azure.com", 443, True),
        ((), "us-central1-aiplatform.googleapis.com", 443, True),
        ((), "example.com", 443, False),
        ((), "api.openai.com.example.com", 443, False),
        (("*.ibm.com",), "us-south.ml.cloud.ibm.com", 443, True),
        (("example.com:8443",), "example.com", 443, False),
        (("example.com:8443",), "example.com", 8443, True),
        (("*",), "example.com", 443, True),
        (("*",), "localhost", 11434, False),
        (("*",), "127.0.0.1", 80, False),
        (("localhost:11434",), "localhost", 11434, True),
        (("localhost:11434",), "localhost", 80, False),
        (("127.0.0.1",), "127.0.0.1", 8000, True),
    ],
)
def test_a_host(named: tuple[str, ...], host: str, port: int, expected: bool) -> None:
    """Known services, and what patterns name; this machine only by its name."""
    assert Hosts(named).has(host, port) is expected


def test_an_option_names_several() -> None:
    given = hosts_from(["api.cohere.com,*.IBM.com", "known", "[::1]:11434"], "--intercept")
    assert given == Hosts(("api.cohere.com", "*.ibm.com", "[::1]:11434"))


@for_all("name", ["https://api.cohere.com", "a b", "host:port", "-- x"])
def test_what_names_no_host_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match="--intercept takes names of hosts"):
        hosts_from([name], "--intercept")
