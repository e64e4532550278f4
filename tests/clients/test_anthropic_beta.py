"""Blocks and fields of Anthropic's betas through the official client's `beta.messages`."""

from __future__ import annotations

import anthropic
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.dialects import Json

SCENARIO = """
scenario: betas
match: {user: Hello}
turns:
  - reply:
      - {native: {type: redacted_thinking, data: c2VjcmV0}, api: anthropic}
      - {reasoning: "", split: ["", ""], signature: c2ln}
      - {native: {type: compaction, content: So far., encrypted_content: ZW5j}, api: anthropic}
      - native: {type: fallback, from: {model: a}, to: {model: claude-b}, trigger: {type: refusal}}
        api: anthropic
      - native: {type: mcp_tool_listing, mcp_server_name: s, tools: [{name: t, input_schema: {}}]}
        api: anthropic
      - {server_tool: advisor, output: {type: advisor_result, text: Be brief.}}
      - {native: {type: container_upload, file_id: file_1}, api: anthropic}
      - text: Done.
    finish_raw: compaction
    usage: {input: 20, output: 200, reasoning: 150}
    extra:
      anthropic:
        finish: {container: {id: c1, expires_at: "2026-01-01T00:00:00Z"}}
        end: {context_management: {applied_edits: []}}
        usage:
          iterations:
            - {type: compaction, input_tokens: 9, output_tokens: 1, cache_read_input_tokens: 0,
               cache_creation_input_tokens: 0}
  - reply: Bye.
"""
ASKED: Json = {
    "model": "claude-a",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
    "betas": ["compact-2026-01-12"],
}


@pytest.fixture
def client() -> anthropic.Anthropic:
    """A client of a server with the scenario."""
    with (
        ServerThread(loads(SCENARIO), ServerOptions(speed=0)) as server,
        anthropic.Anthropic(base_url=server.url, api_key="mock-key", max_retries=0) as client,
    ):
        yield client


def test_the_stream_adds_up_to_the_body(client: anthropic.Anthropic) -> None:
    """The helper of the beta API reads every block, the stop reason, and the fields beside them."""
    with client.beta.messages.stream(**ASKED) as stream:
        counted = [
            event.delta.estimated_tokens
            for event in stream
            if event.type == "content_block_delta" and event.delta.type == "thinking_delta"
        ]
        streamed = stream.get_final_message()
    assert counted == [75, 75]
    assert [block.type for block in streamed.content] == [
        "redacted_thinking",
        "thinking",
        "compaction",
        "fallback",
        "mcp_tool_listing",
        "server_tool_use",
        "advisor_tool_result",
        "container_upload",
        "text",
    ]
    assert streamed.content[2].content == "So far."
    assert streamed.content[2].encrypted_content == "ZW5j"
    assert (streamed.stop_reason, streamed.model) == ("compaction", "claude-b")
    assert streamed.container.id == "c1"
    assert streamed.context_management.applied_edits == []
    assert streamed.usage.iterations[0].type == "compaction"
    body = client.beta.messages.create(**ASKED)
    left_out = {"content": {"__all__": {"parsed_output"}}, "model": True}
    assert streamed.model_dump(exclude=left_out, exclude_none=True) == body.model_dump(
        exclude=left_out, exclude_none=True
    )


def test_the_blocks_are_sent_back(client: anthropic.Anthropic) -> None:
    """A history with all blocks, as the client sends it, leads to the next turn."""
    first = client.beta.messages.create(**ASKED)
    history = [*ASKED["messages"], first.to_param(), {"role": "user", "content": "And now?"}]
    second = client.beta.messages.create(**{**ASKED, "messages": history})
    assert second.content[0].text == "Bye."
