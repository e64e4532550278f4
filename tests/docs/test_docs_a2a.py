"""docs/a2a.md: its scenarios play an agent of A2A."""

import json
import re

from tests.docs.pages import text_of

SOURCES = re.findall(r"^```yaml\n(.*?)^```$", text_of("a2a"), re.MULTILINE | re.DOTALL)


def test_the_page_plays_an_agent(serve):
    """The card, an answer, a stream and a task that is polled; the verdict is good."""
    served = serve("---\n".join(SOURCES))
    card = served.http.get("/.well-known/agent-card.json").json()
    assert card["capabilities"] == {"streaming": True}

    def ask(method, **params):
        body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        return served.http.post("/a2a", json=body)

    sent = ask("message/send").json()
    assert (sent["id"], sent["result"]["parts"][0]["text"]) == ("1", "Rain in Oslo.")
    stream = ask("message/stream")
    assert stream.headers["content-type"] == "text/event-stream"
    data = [line[6:] for line in stream.text.splitlines() if line.startswith("data: ")]
    states = [json.loads(one)["result"].get("status", {}).get("state") for one in data]
    assert states == ["working", None, "completed"]
    polled = [ask("tasks/get", id="t-1").json()["result"]["status"]["state"] for _ in range(3)]
    assert polled == ["working", "completed", "completed"]
    assert served.http.get("/_mockllm/verify").json()["good"]


def test_an_agent_of_both_protocols_has_its_card(serve):
    """MCP servers answer nothing below `/.well-known/` but questions about authorization."""
    server = "mcp: weather\ntools: [{name: get}]\n"
    served = serve("---\n".join([server, *SOURCES]))
    assert served.http.get("/.well-known/agent-card.json").status_code == 200
    assert served.http.get("/.well-known/oauth-authorization-server").status_code == 404
    assert served.http.get("/_mockllm/verify").json()["unmatched"] == []
