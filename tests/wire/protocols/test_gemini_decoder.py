"""Google Gemini: decoding the streams of real services, and malformed ones."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.core.events import Cite, Finish, Frame, Start, StreamError
from mockllm.core.turn import (
    Media,
    Opaque,
    Reasoning,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from mockllm.wire.protocols.gemini_common import compact
from tests.strategies import json_values, objects, texts

Json = dict[str, Any]


def read(*chunks: Any) -> Turn:
    """The turn of these chunks; strings are sent unchanged."""
    frames = [Frame(c if isinstance(c, str) else json.dumps(c)) for c in chunks]
    return of_frames(frames)


def of_frames(frames: list[Frame]) -> Turn:
    return decode_turn(PROTOCOL, frames)[0]


def chunk(*parts: Any, finish: str | None = None, **fields: Any) -> Json:
    """A chunk with one candidate."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    ended = {"finishReason": finish} if finish else {}
    return {"candidates": [{**content, **ended, "index": 0, **fields}]}


def call(name: str | None = None, **fields: Any) -> Json:
    """A part with a call."""
    return {"functionCall": {**({"name": name} if name else {}), **fields}}


STOP = chunk({"text": ""}, finish="STOP")


# Streams of real services


def test_empty_text_is_no_text() -> None:
    """The empty text of the last chunk makes no part."""
    assert read(chunk(call("f", args={})), STOP) == Turn((ToolCall("f", ""),), "tool_calls")


def test_calls_of_one_chunk_keep_their_order() -> None:
    """Calls of the same name without ids are as many calls, in order; no `args` is none."""
    turn = read(chunk(call("f", args={"n": 1}), call("f", args={"n": 1}), call("g"), finish="STOP"))
    assert [(c.name, c.arguments) for c in turn.tool_calls] == [
        ("f", '{"n":1}'),
        ("f", '{"n":1}'),
        ("g", "{}"),
    ]


def test_adjacent_texts_are_one_part() -> None:
    """Chunks of text are fragments of one part; a call begins a new one."""
    turn = read(chunk({"text": "a"}), chunk({"text": "b"}), chunk(call("f")), chunk({"text": "c"}))
    assert turn.parts == (Text(("a", "b")), ToolCall("f", ""), Text(("c",)))


def test_signature_of_an_empty_text() -> None:
    """An empty text with a signature signs the text before it, else the thoughts, else hidden
    ones."""
    signed = chunk({"text": "", "thoughtSignature": "Q2k="}, finish="STOP")
    thought = chunk({"text": "Hm", "thought": True})
    decoded = read(thought, chunk({"text": "Hi"}), signed)
    assert decoded.parts == (Reasoning(("Hm",)), Text(("Hi", ""), signature="Q2k="))
    assert read(thought, signed).parts == (Reasoning(("Hm",), "Q2k="),)
    assert read(signed).parts == (Reasoning(("",), "Q2k="),)


def test_usage_is_the_last_and_adds_thoughts_and_tool_use() -> None:
    """Counts grow from chunk to chunk; thoughts are output, results of hosted tools input."""
    last = {
        "promptTokenCount": 15,
        "candidatesTokenCount": 37,
        "toolUsePromptTokenCount": 770,
        "thoughtsTokenCount": 742,
        "cachedContentTokenCount": 3,
    }
    turn = read(
        {**chunk({"text": "a"}), "usageMetadata": {"promptTokenCount": 1}},
        {**STOP, "usageMetadata": last},
    )
    assert turn.usage == TokenUsage(785, 779, 742, 3)


def test_usage_after_the_end_still_counts() -> None:
    """Tokens in a chunk after the finish replace earlier ones."""
    assert read(STOP, {"usageMetadata": {"promptTokenCount": 5}}).usage == TokenUsage(5, 0)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finish("stop")),
        ("MAX_TOKENS", Finish("length")),
        ("SAFETY", Finish("content_filter")),
        ("PROHIBITED_CONTENT", Finish("content_filter", "PROHIBITED_CONTENT")),
        ("OTHER", Finish("stop", "OTHER")),
        ("MALFORMED_FUNCTION_CALL", Finish("stop", "MALFORMED_FUNCTION_CALL")),
        ("SOMETHING_NEW", Finish("stop", "SOMETHING_NEW")),
    ],
)
def test_finish_reasons(reason: str, finish: Finish) -> None:
    """Every reason of the service has a neutral finish; unusual ones are kept too."""
    decoder = PROTOCOL.decoder()
    assert decoder.decode(Frame(json.dumps(chunk(finish=reason))))[-1] == finish
    assert decoder.complete


def test_refused_prompt() -> None:
    """Feedback without a candidate ends the answer."""
    turn = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (turn.finish, turn.finish_raw) == ("content_filter", "promptFeedback.blockReason=SAFETY")


def test_no_finish_is_no_end() -> None:
    """A stream without a reason to end is not complete."""
    decoder = PROTOCOL.decoder()
    decoder.decode(Frame(json.dumps(chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED"))))
    decoder.close()
    assert not decoder.complete


def test_finish_in_every_chunk() -> None:
    """Old models give a reason in every chunk; nothing after the first is lost."""
    turn = read(chunk({"text": "a"}, finish="STOP"), chunk({"text": "b"}, finish="STOP"))
    assert turn == Turn((Text(("a", "b")),), "stop")


def test_error_inside_the_stream() -> None:
    """An error ends the stream, with Google's status and number."""
    error = {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}
    turn = read(chunk({"text": "a"}), {"error": error})
    assert (turn.error, turn.finish) == (StreamError("Busy.", "UNAVAILABLE", "503"), None)


def test_error_in_an_array() -> None:
    """An error in an array of its own is the same error; an array of chunks is kept as it is."""
    error = {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}
    turn = read(chunk({"text": "a"}), [{"error": error}])
    assert (turn.error, turn.finish) == (StreamError("Busy.", "UNAVAILABLE", "503"), None)
    chunks = Frame(json.dumps([chunk({"text": "a"})]))
    assert of_frames([chunks]) == Turn((Opaque("gemini", chunks),))


def test_start_has_id_and_model() -> None:
    """The start event has the id and model of the first chunk."""
    first = {**chunk({"text": "a"}), "responseId": "r1", "modelVersion": "gemini-2.5-pro"}
    assert PROTOCOL.decoder().decode(Frame(json.dumps(first)))[0] == Start("r1", "gemini-2.5-pro")


def test_done_and_strings_for_arguments() -> None:
    """`[DONE]` and arguments as strings, which converters add, are read."""
    turn = read(chunk(call("f", args='{"a":1}')), STOP, "[DONE]")
    assert turn == Turn((ToolCall("f", "", ('{"a":1}',)),), "tool_calls")


# Values without a neutral form


def test_other_parts_are_kept_in_order() -> None:
    """Files and unknown parts between texts are frames between them."""
    video = {"inlineData": {"mimeType": "video/mp4", "data": "iVBORw0="}}
    turn = read(chunk({"text": "a"}, video, {"text": "b"}), chunk(video))
    frames = [part.frame for part in turn.parts if isinstance(part, Opaque)]
    assert [json.loads(f.data or "")["candidates"][0]["content"]["parts"] for f in frames] == [
        [video],
        [video],
    ]
    assert turn.text == "ab"
    assert frames[1].data == json.dumps(chunk(video))


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "no base64"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0=", "displayName": "a.png"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}, "thought": True},
        {"inlineData": {"data": "iVBORw0="}},
    ],
    ids=["broken", "named", "thought", "no type"],
)
def test_odd_images_are_kept(part: dict[str, Any]) -> None:
    """What is more or less than the bytes of an image stays a frame, so that nothing is lost."""
    (opaque,) = read(chunk(part)).parts
    assert isinstance(opaque, Opaque)
    assert opaque.frame.data == json.dumps(chunk(part))


def test_images_and_sounds_are_parts() -> None:
    """Each image is a part, with its signature; pieces of sound of one type that follow each other
    are one."""
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}
    one = {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AAE="}}
    two = {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AgM="}}
    turn = read(chunk(image, {**image, "thoughtSignature": "c2ln"}), chunk(one), chunk(two))
    assert turn.parts == (
        Media("image/png", (b"\x89PNG\r",)),
        Media("image/png", (b"\x89PNG\r",), signature="c2ln"),
        Media("audio/L16;rate=24000", (b"\x00\x01", b"\x02\x03")),
    )


@pytest.mark.parametrize(
    "field",
    [
        {"urlContextMetadata": {"urlMetadata": [{"newer": 1}]}},
        {"groundingMetadata": {"newer": 1}},
        {"continuationToken": "not base64"},
        {"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}]},
        {"citationMetadata": {"citationSources": {}}},
        {"finishMessage": "Malformed function call: f("},
    ],
)
def test_other_fields_are_kept(field: Json) -> None:
    """Other fields of a candidate are a frame after its text, and decode to the same frame."""
    turn = read(chunk({"text": "a"}, **field), STOP)
    assert turn.text == "a"
    (frame,) = [part.frame for part in turn.parts if isinstance(part, Opaque)]
    assert json.loads(frame.data or "") == {"candidates": [{**field, "index": 0}]}
    assert of_frames([frame]) == Turn((Opaque("gemini", frame),))


def test_log_probabilities_are_those_of_the_text_beside_them() -> None:
    """A text with log probabilities has some; without a visible text, or without tokens, they are
    a frame."""
    tokens = {"logprobsResult": {"chosenCandidates": [{"token": "a", "logProbability": -1}]}}
    thought = {"text": "t", "thought": True}
    assert read(chunk(thought, {"text": "a"}, **tokens)).parts == (
        Reasoning(("t",)),
        Text(("a",), logprobs=True),
    )
    only_top = {"logprobsResult": {"topCandidates": [{}]}}
    for alone in (chunk(thought, **tokens), chunk({"text": "a"}, **only_top)):
        turn = read(alone)
        (kept,) = [part.frame for part in turn.parts if isinstance(part, Opaque)]
        result = alone["candidates"][0]["logprobsResult"]
        assert json.loads(kept.data or "")["candidates"] == [{"logprobsResult": result, "index": 0}]
        assert not any(part.logprobs for part in turn.parts if isinstance(part, Text))


def test_trivial_fields_are_not_kept() -> None:
    """Empty metadata and ratings without a finding are no frames."""
    ratings = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}]
    turn = read(chunk({"text": "a"}, groundingMetadata={}, safetyRatings=ratings))
    assert turn == Turn((Text(("a",)),))


def test_plain_sources_are_citations() -> None:
    """Sources with one passage each are citations of the text."""
    metadata = {
        "groundingChunks": [{"web": {"uri": "u", "title": "t"}}, {"web": {"uri": "v"}}],
        "groundingSupports": [
            {"segment": {"endIndex": 1, "text": "a"}, "groundingChunkIndices": [1]}
        ],
    }
    turn = read(chunk({"text": "a"}, finish="STOP", groundingMetadata=metadata))
    assert turn.parts == (Text(("a",), (Cite(0, "u", "t"), Cite(0, "v", "", "a"))),)


def test_other_candidates_are_kept_if_they_differ() -> None:
    """A second candidate with the same parts is dropped, another one is kept."""
    first, same, other = ({"content": {"parts": [{"text": t}]}} for t in "aab")
    turn = read({"candidates": [first, {**same, "index": 1}, {**other, "index": 2}]})
    assert turn.text == "a"
    assert len(turn.parts) == 2


def test_comments_and_junk_are_kept() -> None:
    """Frames that are no chunks are kept as they are."""
    frames = [Frame(comment="wait"), Frame("no JSON"), Frame("[1]"), Frame('{"a": NaN}')]
    assert of_frames(frames).parts == tuple(Opaque("gemini", frame) for frame in frames)


def test_depth_does_not_matter() -> None:
    """Deeply nested chunks are kept without recursion."""
    deep = '{"candidates":[{"content":{"parts":[{"x":' + "[" * 5000 + "]" * 5000 + "}]}}]}"
    assert len(read(deep).parts) == 1


# Any input


partial_args = objects(
    jsonPath=st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[1]", "$", "$.c"]),
    stringValue=texts,
    numberValue=st.integers(),
    boolValue=st.booleans(),
    nullValue=st.none(),
)
calls = objects(
    name=st.sampled_from("fg"),
    args=st.dictionaries(texts, json_values, max_size=2),
    partialArgs=st.lists(partial_args, max_size=3),
    willContinue=st.just(True),
)
parts = objects(text=texts, thought=st.booleans(), thoughtSignature=texts, functionCall=calls)
candidates = objects(
    content=objects(parts=st.lists(parts, max_size=3)),
    finishReason=st.sampled_from(["STOP", "MAX_TOKENS", "x"]),
    index=st.integers(0, 1),
    groundingMetadata=objects(
        groundingChunks=st.lists(objects(web=objects(uri=texts)), max_size=2),
        groundingSupports=st.lists(objects(groundingChunkIndices=st.just([0])), max_size=2),
    ),
)
chunks = objects(
    candidates=st.lists(candidates, max_size=2),
    usageMetadata=objects(promptTokenCount=st.integers()),
    promptFeedback=objects(blockReason=texts),
    error=objects(code=st.integers(), message=texts),
)


@given(st.lists(chunks | json_values, max_size=5))
def test_nothing_makes_the_decoder_fail(items: list[Any]) -> None:
    """Chunks with any JSON decode to a turn."""
    assert isinstance(read(*items), Turn)


@given(chunks)
def test_a_body_is_read_or_refused(body: Any) -> None:
    """A body with any JSON decodes to a turn, or is refused with a reason."""
    with contextlib.suppress(WireError):
        assert isinstance(PROTOCOL.decode_body(body if isinstance(body, dict) else {}), Turn)


def test_every_signature_is_kept() -> None:
    """Signatures on a thought, on a text and on the empty text after it are three values."""
    thought = {"text": "Hm", "thought": True, "thoughtSignature": "YQ=="}
    turn = read(
        chunk(thought),
        chunk({"text": "Hi", "thoughtSignature": "Yg=="}),
        chunk({"text": "", "thoughtSignature": "Yw=="}, finish="STOP"),
    )
    assert turn.parts == (
        Reasoning(("Hm",), "YQ=="),
        Text(("Hi",), signature="Yg=="),
        Reasoning(("",), "Yw=="),
    )


def test_signatures_separate_texts() -> None:
    """A signed text begins a part; an empty signed text ends one."""
    turn = read(
        chunk({"text": "a"}),
        chunk({"text": "b", "thoughtSignature": "Yg=="}),
        chunk({"text": "c"}),
        chunk({"text": "d", "thoughtSignature": "ZA=="}, {"text": "e"}),
    )
    assert turn.parts == (
        Text(("a",)),
        Text(("b", "c"), signature="Yg=="),
        Text(("d", "e"), signature="ZA=="),
    )
    turn = read(
        chunk({"text": "a"}), chunk({"text": "", "thoughtSignature": "YQ=="}, {"text": "b"})
    )
    assert turn.parts == (Text(("a", ""), signature="YQ=="), Text(("b",)))


CODE = {"language": "PYTHON", "code": "1+1"}
RESULT = {"outcome": "OUTCOME_OK", "output": "2"}


def test_code_and_its_result_are_one_tool_of_the_service() -> None:
    """Executable code and the result directly after it are one part, also from two chunks."""
    own = ServerTool("code_interpreter", "", "", (compact(CODE),), compact(RESULT))
    code, result = {"executableCode": CODE}, {"codeExecutionResult": RESULT}
    assert read(chunk(code, result)).parts == (own,)
    assert read(chunk(code), chunk(result), chunk({"text": "2"})).parts == (own, Text(("2",)))


def test_a_result_elsewhere_is_a_part_of_its_own() -> None:
    """A result after another part, or with another id, keeps its position."""
    code, result = {"executableCode": CODE}, {"codeExecutionResult": RESULT}
    turn = read(chunk(code, {"text": "a"}, result))
    assert turn.parts == (
        ServerTool("code_interpreter", "", "", (compact(CODE),)),
        Text(("a",)),
        ServerTool("code_interpreter", "", "codeExecutionResult", (), compact(RESULT)),
    )
    search = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}}
    found = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"n": 1}}}
    others = {"toolCall": {"id": "t2", "toolType": "NEW_TOOL", "args": {}}}
    turn = read(chunk(search, found, others, {**found}))
    assert turn.parts == (
        ServerTool("web_search", "t1", "", ('{"queries":["x"]}',), '{"n":1}'),
        ServerTool("new_tool", "t2", "NEW_TOOL"),
        ServerTool("web_search", "t1", "toolResponse", (), '{"n":1}'),
    )


def test_citations_of_any_metadata() -> None:
    """Sources with passages are citations, whatever else the metadata has; those that chunks repeat
    count once, and sources of a file search have no URL."""
    web = {"web": {"uri": "https://a.example/", "title": "A"}}
    stored = {"retrievedContext": {"text": "Paris is…", "title": "facts.txt"}}
    support = {"segment": {"text": "Paris"}, "groundingChunkIndices": [0, 1], "confidence": [1, 1]}
    first = {"groundingChunks": [web], "webSearchQueries": ["capital"]}
    last = {**first, "groundingChunks": [web, stored], "groundingSupports": [support]}
    turn = read(
        chunk({"text": "Paris"}, groundingMetadata={}),
        chunk({"text": "."}, groundingMetadata=last),
        chunk({"text": ""}, finish="STOP", groundingMetadata=last),
    )
    cites = (Cite(0, "https://a.example/", "A", "Paris"), Cite(0, "", "facts.txt", "Paris"))
    text, native = turn.parts
    assert text == Text(("Paris", "."), cites)
    queries = '{"type":"groundingMetadata","webSearchQueries":["capital"]}'
    assert native == Opaque("gemini", Frame(queries), native=True)
