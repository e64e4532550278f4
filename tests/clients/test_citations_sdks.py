"""Citations of documents and search results, as the official SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import (
    CitationCharLocation,
    CitationContentBlockLocation,
    CitationPageLocation,
    CitationsSearchResultLocation,
    CitationsWebSearchResultLocation,
    Message,
    TextBlock,
)

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.bedrock_client import bedrock
from tests.timeouts import GIVE_UP

TEXT = """\
scenario: cites
match: any
turns:
  - reply:
      text: The grass is green.
      citations:
        - {document: 1, title: Report, cited_text: green, characters: [3, 8]}
        - {document: 0, cited_text: grass, pages: [1, 2]}
        - {document: 0, cited_text: is, blocks: [4, 5]}
        - {search_result: 2, url: "https://a.example/", title: A, cited_text: The, blocks: [0, 1]}
        - {url: "https://b.example/", title: B}
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ServerThread(loads(TEXT), ServerOptions(speed=0)) as running:
        yield running.url


ASK: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Cite."}],
}


def test_anthropic_has_every_kind_of_place(url: str) -> None:
    """Each citation is of the type that has its place, in a body and in an accumulated stream."""
    http = anthropic.DefaultHttpxClient(trust_env=False)
    client = anthropic.Anthropic(api_key="k", base_url=url, timeout=GIVE_UP, http_client=http)
    with client, client.messages.stream(**ASK) as stream:
        answers: list[Message] = [client.messages.create(**ASK), stream.get_final_message()]
    for answer in answers:
        (block,) = answer.content
        assert isinstance(block, TextBlock)
        characters, page, of_block, result, web = block.citations or ()
        assert isinstance(characters, CitationCharLocation)
        place = characters.document_index, characters.start_char_index, characters.end_char_index
        assert place == (1, 3, 8)
        assert (characters.document_title, characters.cited_text) == ("Report", "green")
        assert isinstance(page, CitationPageLocation)
        assert (page.start_page_number, page.end_page_number) == (1, 2)
        assert page.document_title is None
        assert isinstance(of_block, CitationContentBlockLocation)
        assert (of_block.start_block_index, of_block.end_block_index) == (4, 5)
        assert isinstance(result, CitationsSearchResultLocation)
        assert (result.search_result_index, result.source) == (2, "https://a.example/")
        assert isinstance(web, CitationsWebSearchResultLocation)
        assert web.url == "https://b.example/"


def test_boto3_has_every_kind_of_place(url: str) -> None:
    """Converse has a member of the location for each."""
    ask = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Cite."}]}]}
    with bedrock(url) as client:
        (block,) = client.converse(**ask)["output"]["message"]["content"]
    locations = [cite["location"] for cite in block["citationsContent"]["citations"]]
    assert locations == [
        {"documentChar": {"documentIndex": 1, "start": 3, "end": 8}},
        {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}},
        {"documentChunk": {"documentIndex": 0, "start": 4, "end": 5}},
        {"searchResultLocation": {"searchResultIndex": 2, "start": 0, "end": 1}},
        {"web": {"url": "https://b.example/"}},
    ]


def test_openai_has_those_with_an_address(url: str) -> None:
    """Chat Completions and Responses know addresses and no documents of the request."""
    http = openai.DefaultHttpxClient(trust_env=False)
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", timeout=GIVE_UP, http_client=http)
    with client:
        messages: Any = ASK["messages"]
        chat = client.chat.completions.create(model="m", messages=messages)
        response = client.responses.create(model="m", input=messages)
    cited = [item.url_citation.url for item in chat.choices[0].message.annotations or ()]
    assert cited == ["https://a.example/", "https://b.example/"]
    (item,) = response.output
    assert item.type == "message"
    (content,) = item.content
    assert content.type == "output_text"
    urls = [note.url for note in content.annotations if note.type == "url_citation"]
    assert urls == ["https://a.example/", "https://b.example/"]
