"""OpenAI Responses: the annotations of a text, and when they are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputItem

from mockllm.core.events import Cite
from mockllm.core.turn import Text, Turn
from mockllm.wire.protocols.openai_responses.citations import annotations_of, citation
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests import strategies
from tests.wire.protocols.projections.openai_responses import projected_citations
from tests.wire.protocols.strict import problems
from tests.wire.protocols.test_openai_responses import REPLY, played, read, values

FILES = [
    {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 3},
    {"type": "file_path", "file_id": "file-1", "index": 3},
    {
        "type": "container_file_citation",
        "container_id": "cntr_1",
        "end_index": 5,
        "file_id": "cfile_1",
        "filename": "a/b.png",
        "start_index": 2,
    },
    {"type": "url_citation", "start_index": 2, "end_index": 5, "title": "T", "url": "https://x"},
]


@pytest.mark.parametrize("value", FILES, ids=lambda value: value["type"])
def test_annotations_come_back_unchanged(value: dict[str, Any]) -> None:
    """Each type of annotation is a citation, which is sent as the same annotation."""
    text = "abcdefg"
    part = Text((text,), (citation(0, value, text),))
    assert annotations_of(part) == [value]
    item = PROTOCOL.encode_body(Turn((part,), "stop"), REPLY)["output"][0]
    assert item["content"][0]["annotations"] == [value]
    assert problems(ResponseOutputItem, item) == []


urls = st.sampled_from(
    ["https://x", "file_citation:f", "file_citation:f#2", "file_path:f#99", "file_citation:"]
) | st.just("container_file_citation:c/f")


@given(
    strategies.texts,
    st.lists(st.builds(Cite, st.just(0), urls, strategies.texts, strategies.texts)),
)
def test_projected_citations_are_stable(text: str, cites: list[Cite]) -> None:
    """What a client reads from annotations is what it reads from those of the projection."""
    once = projected_citations(Text((text,), tuple(cites)))
    assert projected_citations(Text((text,), once)) == once
    turn = Turn((Text((text,), tuple(cites)),), "stop")
    assert read(played(turn)) == PROTOCOL.project(turn)


def test_annotations_are_sent_while_the_text_streams() -> None:
    """An annotation follows the delta that completes its text; one of no text comes at the end."""
    cites = (Cite(0, "https://x", "", "abc"), Cite(0, "https://y"))
    events = values(Turn((Text(("ab", "cd", "ef"), cites),), "stop"))
    between = [event for event in events if event["type"].startswith("response.output_text")]
    assert [event.get("delta", event.get("annotation_index")) for event in between] == [
        "ab",
        "cd",
        0,
        "ef",
        1,
        None,
    ]


def test_the_same_text_is_cited_where_it_comes_next() -> None:
    """Two citations of one text have the spans of its first and its second occurrence."""
    cites = (Cite(0, "https://x", "", "ab"), Cite(0, "https://y", "", "ab"))
    spans = [value["start_index"] for value in annotations_of(Text(("ab ab",), cites))]
    assert spans == [0, 3]


def test_unknown_annotations_are_no_citations() -> None:
    """An annotation of an unknown type is not read as a citation of nothing."""
    content = {"type": "output_text", "text": "a", "annotations": [{"type": "new", "x": 1}]}
    item = {"type": "message", "id": "m", "content": [content]}
    body: dict[str, Any] = {"status": "completed", "output": [item]}
    assert PROTOCOL.decode_body(json.loads(json.dumps(body))).parts == (Text(("a",)),)
