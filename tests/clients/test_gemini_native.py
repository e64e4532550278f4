"""What an answer of Gemini says of itself, through google-genai, recorded and played again."""

from __future__ import annotations

from pathlib import Path

import pytest
from google import genai
from google.genai.types import GenerateContentResponse, HttpOptions

from mockllm.play.replay.loading import load, loads
from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread

pytestmark = pytest.mark.slow

SCENARIO = """
scenario: looked-up
match: {user: Hello}
turns:
  - reply:
      - text: The tides are high.
        citations: [{url: "https://example.com/", title: Tides, cited_text: The tides}]
      - native:
          type: groundingMetadata
          webSearchQueries: [tides]
          searchEntryPoint: {renderedContent: <div>tides</div>}
        api: gemini
      - native:
          type: urlContextMetadata
          urlMetadata:
            - retrievedUrl: https://example.com/
              urlRetrievalStatus: URL_RETRIEVAL_STATUS_SUCCESS
        api: gemini
      - {native: {type: citationMetadata, citationSources: [{endIndex: 9}]}, api: gemini}
      - {native: {type: continuationToken, token: YWJj}, api: gemini}
    finish_raw: TOO_MANY_TOOL_CALLS
    usage: {input: 20, output: 10, cached: 8}
    extra:
      gemini:
        usage:
          cacheTokensDetails: [{modality: TEXT, tokenCount: 8}]
          toolUsePromptTokensDetails: [{modality: TEXT, tokenCount: 4}]
"""


def ask(url: str) -> list[GenerateContentResponse]:
    """The last chunk of a stream, and the body."""
    with genai.Client(api_key="key", http_options=HttpOptions(base_url=url)) as client:
        streamed = client.models.generate_content_stream(model="gemini-2.5-flash", contents="Hello")
        *_, last = streamed
        return [last, client.models.generate_content(model="gemini-2.5-flash", contents="Hello")]


def test_the_sdk_reads_what_an_answer_says_of_itself(tmp_path: Path) -> None:
    """Stream and body have every field, the recorder writes the same parts, and what it wrote is
    played again without its tapes, too."""
    folder = tmp_path / "recorded"
    with ServerThread(loads(SCENARIO), ServerOptions(speed=0)) as service:
        options = RecordOptions(folder, {"gemini": service.url})
        with ServerThread((), ServerOptions(record=options)) as recorder:
            sent = ask(recorder.url)
    for answer in sent:
        (candidate,) = answer.candidates or []
        grounding, context = candidate.grounding_metadata, candidate.url_context_metadata
        assert grounding is not None
        assert context is not None
        assert grounding.web_search_queries == ["tides"]
        assert grounding.search_entry_point.rendered_content == "<div>tides</div>"
        assert grounding.grounding_chunks[0].web.title == "Tides"
        assert context.url_metadata[0].retrieved_url == "https://example.com/"
        assert candidate.citation_metadata.citations[0].end_index == 9
        assert candidate.continuation_token == b"abc"
        assert candidate.finish_reason == "TOO_MANY_TOOL_CALLS"
        usage = answer.usage_metadata
        assert usage.cache_tokens_details[0].token_count == 8
        assert usage.tool_use_prompt_tokens_details[0].token_count == 4
    recorded = load([folder])
    (written,) = loads(SCENARIO)
    for scenario in recorded:
        (turn,) = scenario.turns
        # A body has its text in one part, as the scenario has.
        assert [part for part in turn.reply if hasattr(part, "value")] == list(
            written.turns[0].reply[1:]
        )
        assert turn.finish_raw == "TOO_MANY_TOOL_CALLS"
        assert turn.extra == written.turns[0].extra
    with ServerThread(recorded, ServerOptions(speed=0)) as replay:
        assert ask(replay.url) == sent
