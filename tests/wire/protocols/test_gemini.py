"""Google Gemini: the exact chunks, bodies, errors and lookups."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.genai import types

from mockllm.core.errors import RequestError
from mockllm.core.events import Cite, Frame, StreamError, Token
from mockllm.core.http import Target
from mockllm.core.turn import (
    Opaque,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Lookup, Reply
from mockllm.wire.protocols.gemini.fields import Options
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from tests.wire.protocols.streams import encoded

TOKEN = "0" * 40
ID = PROTOCOL.answer_id(Reply("seed", TOKEN, "gemini-2.5-flash", Options()))
PARIS = ToolCall("get_weather", "w1", ('{"city":', '"Paris"}'))


def wire(turn: Turn, **options: Any) -> str:
    """The stream of a turn, as it is sent."""
    reply = Reply("seed", TOKEN, "gemini-2.5-flash", Options(**options))
    frames = encoded(PROTOCOL, turn, reply)
    return b"".join(sse.encode(frame, PROTOCOL.line_end) for frame in frames).decode()


def candidates(turn: Turn, **options: Any) -> list[Any]:
    """The first candidate of each chunk, None where there is none."""
    values = [json.loads(line[6:]) for line in wire(turn, **options).splitlines() if line]
    return [(value.get("candidates") or [None])[0] for value in values]


def parts(turn: Turn, **options: Any) -> list[Any]:
    """The parts of all chunks but the last, one after the other."""
    return [part for c in candidates(turn, **options)[:-1] for part in c["content"]["parts"]]


def body(turn: Turn, **options: Any) -> dict[str, Any]:
    """The answer that is not streamed."""
    return PROTOCOL.encode_body(turn, Reply("seed", TOKEN, "gemini-2.5-flash", Options(**options)))


TAIL = f'"modelVersion": "gemini-2.5-flash","responseId": "{ID}"}}'


def event(candidate: str, usage: str) -> str:
    """One event, from its only candidate and its usage."""
    return f'data: {{"candidates": [{{{candidate}}}],"usageMetadata": {{{usage}}},{TAIL}\r\n\r\n'


PROMPT = '"promptTokensDetails": [{"modality": "TEXT","tokenCount": 11}],"serviceTier": "standard"'


def test_the_exact_bytes_of_a_text_stream() -> None:
    """Text is streamed with Google's own spacing and line ends, each chunk with the tokens so
    far."""
    turn = Turn((Text(("Hi", " <you>")),), "stop", TokenUsage(11, 8))
    assert wire(turn) == "".join(
        (
            event(
                '"content": {"parts": [{"text": "Hi"}],"role": "model"},"index": 0',
                f'"promptTokenCount": 11,"candidatesTokenCount": 2,"totalTokenCount": 13,{PROMPT}',
            ),
            event(
                '"content": {"parts": [{"text": " \\u003cyou\\u003e"}],"role": "model"},"index": 0',
                f'"promptTokenCount": 11,"candidatesTokenCount": 8,"totalTokenCount": 19,{PROMPT}',
            ),
            event(
                '"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP",'
                '"index": 0',
                f'"promptTokenCount": 11,"candidatesTokenCount": 8,"totalTokenCount": 19,{PROMPT}',
            ),
        )
    )


def test_usage_of_thoughts_and_cache() -> None:
    """Thoughts are not among the candidates' tokens; cached tokens are part of the prompt's."""
    turn = Turn((Text(("x",)),), "stop", TokenUsage(9, 7, 3, 4))
    assert body(turn)["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 4,
        "totalTokenCount": 16,
        "cachedContentTokenCount": 4,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
        "thoughtsTokenCount": 3,
        "serviceTier": "standard",
    }


def test_older_models_say_what_their_tokens_are() -> None:
    """Up to 2.0 on the Gemini API, as the corpus shows, and all on Vertex AI."""
    turn = Turn((Text(("x",)),), "stop", TokenUsage(9, 7))
    for model, vertex, detailed in (
        ("gemini-1.5-flash", False, True),
        ("gemini-2.0-flash", False, True),
        ("gemini-2.5-pro", False, False),
        ("gemini-3-flash-preview", True, True),
    ):
        reply = Reply("seed", TOKEN, model, Options(vertex=vertex))
        usage = PROTOCOL.encode_body(turn, reply)["usageMetadata"]
        expected = [{"modality": "TEXT", "tokenCount": 7}] if detailed else None
        assert usage.get("candidatesTokensDetails") == expected


def test_calls_are_whole_and_end_in_stop() -> None:
    """A call is one part with all its arguments, and the answer ends in STOP."""
    turn = Turn((PARIS, ToolCall("now", "n1")), "tool_calls", TokenUsage(11, 7))
    assert parts(turn) == [
        {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}},
        {"functionCall": {"name": "now", "args": {}}},
    ]
    assert candidates(turn)[-1] == {
        "content": {"parts": [{"text": ""}], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
    }


def test_call_ids_and_empty_arguments() -> None:
    """Ids are sent where the service has them, and never empty; empty arguments always are."""
    turn = Turn((ToolCall("now", "n1"), ToolCall("then", "")), "tool_calls")
    assert parts(turn, ids=True) == [
        {"functionCall": {"name": "now", "args": {}, "id": "n1"}},
        {"functionCall": {"name": "then", "args": {}}},
    ]


def test_fragments_of_arguments() -> None:
    """With the setting, a call opens, its strings grow under their path, and it is closed."""
    call = ToolCall("get_weather", "w1", ('{"city":"Pa', 'ris","days":3', "}"))
    assert parts(Turn((call,), "tool_calls"), partial=True) == [
        {"functionCall": part}
        for part in (
            {"name": "get_weather", "willContinue": True},
            {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "Pa", "willContinue": True}],
                "willContinue": True,
            },
            {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "ri", "willContinue": True}],
                "willContinue": True,
            },
            {
                "partialArgs": [
                    {"jsonPath": "$.city", "stringValue": "s"},
                    {"jsonPath": "$.days", "numberValue": 3},
                ],
                "willContinue": True,
            },
            {},
        )
    ]


def test_calls_that_cannot_be_fragmented() -> None:
    """Missing arguments and nested empty objects are sent whole; so are alternating calls."""
    alone = ToolCall("f", "", ('{"a":', "[]}"))
    assert parts(Turn((alone, ToolCall("g", "")), "tool_calls"), partial=True) == [
        {"functionCall": {"name": "f", "args": {"a": []}}},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    turn = Turn((PARIS, PARIS), "tool_calls", order=(0, 1, 0, 1, 0, 1))
    whole = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
    assert parts(turn, partial=True) == [whole, whole]


def test_a_malformed_call_ends_the_answer() -> None:
    """Arguments that are no JSON object end the answer with the service's reason; the call is not
    sent."""
    turn = Turn((Text(("Hm",)), ToolCall("f", "", ('{"a":',))), "tool_calls")
    assert parts(turn) == [{"text": "Hm"}]
    assert candidates(turn)[-1]["finishReason"] == "MALFORMED_FUNCTION_CALL"


def test_thoughts_and_their_signature() -> None:
    """Thoughts are marked; their signature goes with the first call, or with the last text."""
    thoughts = Reasoning(("Hm", "m."), "Q2lRQg==")
    thought = [{"text": "Hm", "thought": True}, {"text": "m.", "thought": True}]
    assert parts(Turn((thoughts, PARIS, PARIS), "tool_calls"))[:3] == [
        *thought,
        {
            "functionCall": {"name": "get_weather", "args": {"city": "Paris"}},
            "thoughtSignature": "Q2lRQg==",
        },
    ]
    turn = Turn((thoughts, Text(("Hi",))), "stop")
    assert parts(turn) == [*thought, {"text": "Hi"}]
    last = [{"text": "", "thoughtSignature": "Q2lRQg=="}]
    assert candidates(turn)[-1]["content"]["parts"] == last


def test_signature_is_always_base64() -> None:
    """A signature that is not base64 is encoded, because clients decode it."""
    signed = parts(Turn((ToolCall("f", "", signature="sig_1"),), "tool_calls"))[0]
    assert base64.b64decode(signed["thoughtSignature"]) == b"sig_1"


@pytest.mark.parametrize(
    ("turn", "last"),
    [
        (
            Turn((Reasoning(("Hm",)),), "length"),
            {"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0},
        ),
        (
            Turn((Text(("Par",)),), "length"),
            {
                "content": {"parts": [{"text": ""}], "role": "model"},
                "finishReason": "MAX_TOKENS",
                "index": 0,
            },
        ),
        (
            Turn((Text(("Par",)),), "content_filter"),
            {
                "finishReason": "SAFETY",
                "index": 0,
                "safetyRatings": [
                    {
                        "category": "HARM_CATEGORY_DANGEROUS_CONTENT",
                        "probability": "HIGH",
                        "blocked": True,
                    }
                ],
            },
        ),
        (
            Turn((), "content_filter", finish_raw="RECITATION"),
            {"finishReason": "RECITATION", "index": 0},
        ),
        (
            Turn((Refusal(("No.",)),), "refusal"),
            {
                "content": {"parts": [{"text": ""}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            },
        ),
    ],
)
def test_ends(turn: Turn, last: dict[str, Any]) -> None:
    """Every finish has the service's own reason and shape."""
    assert candidates(turn)[-1] == last


def test_refused_prompt_has_no_candidate() -> None:
    """A refused prompt has feedback and no candidate."""
    raw = "promptFeedback.blockReason=PROHIBITED_CONTENT"
    turn = Turn((), "content_filter", TokenUsage(11, 0), finish_raw=raw)
    usage = f'"promptTokenCount": 11,"totalTokenCount": 11,{PROMPT}'
    assert wire(turn) == (
        'data: {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},'
        f'"usageMetadata": {{{usage}}},{TAIL}\r\n\r\n'
    )


def test_error_inside_the_stream() -> None:
    """An error has a code and a Google status, whichever API it was written for."""
    turn = Turn((Text(("Hi",)),), error=StreamError("Busy.", "overloaded_error"))
    assert wire(turn).split("\r\n")[2] == (
        'data: {"error": {"code": 503,"message": "Busy.","status": "UNAVAILABLE"}}'
    )
    assert body(turn) == {"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}


def test_citations_ground_the_end() -> None:
    """Citations are sources in the last chunk, each with the position of the text that it
    supports."""
    cite = Cite(0, "https://example.com/", "Example", "is Paris")
    turn = Turn((Text(("É: it ", "is Paris."), (cite,)),), "stop")
    assert candidates(turn)[-1]["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "https://example.com/", "title": "Example"}}],
        "groundingSupports": [
            {
                "segment": {"startIndex": 7, "endIndex": 15, "text": "is Paris"},
                "groundingChunkIndices": [0],
            }
        ],
    }


def test_candidates_are_equal() -> None:
    """Several candidates have the same parts, each with its index."""
    value = json.loads(wire(Turn((Text(("Hi",)),), "stop"), candidates=2).split("\r\n")[0][6:])
    assert [c["index"] for c in value["candidates"]] == [0, 1]
    assert [c["content"]["parts"] for c in value["candidates"]] == [[{"text": "Hi"}]] * 2


def test_the_array_of_chunks() -> None:
    """Without SSE the chunks are one JSON array, with the service's own line ends between them."""
    text = wire(Turn((Text(("Hi", "!")),), "stop"), array=True)
    assert text.startswith('[{"candidates"')
    assert text.count("\n,\r\n") == 2
    assert text.endswith("}\n]")


def test_array_keeps_frames_that_are_json() -> None:
    """A frame kept as it is becomes an element; what is no JSON cannot be one."""
    turn = Turn((Opaque("gemini", Frame('{"a":1}')), Opaque("gemini", Frame(comment="x"))), "stop")
    assert json.loads(wire(turn, array=True))[0] == {"a": 1}


ENDS = [
    {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
    {"promptFeedback": {"blockReason": "SAFETY"}},
]


@pytest.mark.parametrize("end", ENDS)
def test_a_frame_may_end_the_answer(end: dict[str, Any]) -> None:
    """A frame with a finish reason or a blocked prompt replaces the end, also in an array."""
    turn = Turn((Opaque("gemini", Frame(json.dumps(end))),), "stop", TokenUsage(1, 1))
    assert [json.loads(frame.data or "") for frame in sse.decode(wire(turn).encode())] == [end]
    assert json.loads(wire(turn, array=True)) == [end]


def test_a_frame_of_another_candidate_does_not_end_the_answer() -> None:
    """Only the finish reason of the first candidate ends the answer."""
    other = {"candidates": [{"index": 1, "finishReason": "STOP"}]}
    turn = Turn((Opaque("gemini", Frame(json.dumps(other))),), "stop")
    assert len(candidates(turn)) == 2


def test_body_joins_the_chunks() -> None:
    """A body has each text in one part, no empty text at its end, and a message about calls."""
    turn = Turn((Reasoning(("H", "m")), Text(("Hi", "!")), PARIS), "tool_calls")
    assert body(turn) == {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "Hm", "thought": True},
                        {"text": "Hi!"},
                        {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}},
                    ],
                    "role": "model",
                },
                "finishReason": "STOP",
                "finishMessage": "Model generated function call(s).",
                "index": 0,
            }
        ],
        "modelVersion": "gemini-2.5-flash",
        "responseId": ID,
    }


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        (Turn((), "stop"), {"parts": [{"text": ""}], "role": "model"}),
        (Turn((), "length"), {"role": "model"}),
        (Turn((Text(("Par",)),), "length"), {"parts": [{"text": "Par"}], "role": "model"}),
    ],
)
def test_the_body_of_an_empty_answer(turn: Turn, content: dict[str, Any]) -> None:
    """An empty answer has content; one that ran out of tokens has no parts."""
    assert body(turn)["candidates"][0]["content"] == content


def test_headers() -> None:
    """The content type differs for SSE, array and body, and has no charset for SSE."""
    events = Reply("s", TOKEN, "m", Options())
    array = Reply("s", TOKEN, "m", Options(array=True))
    assert PROTOCOL.headers(events, True)["content-type"] == "text/event-stream"
    assert PROTOCOL.headers(array, True)["content-type"] == "application/json"
    assert PROTOCOL.headers(events, False)["content-type"] == "application/json; charset=UTF-8"
    assert PROTOCOL.headers(events, True) == PROTOCOL.headers(events, True)


# Errors


@pytest.mark.parametrize(
    ("status", "status_name"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (413, "INVALID_ARGUMENT"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
        (529, "UNAVAILABLE"),
    ],
)
def test_error_statuses(status: int, status_name: str) -> None:
    """Each HTTP status has its canonical Google status."""
    error = PROTOCOL.error_body(RequestError("No.", status=status))
    assert error == {"error": {"code": status, "message": "No.", "status": status_name}}


def test_a_rate_limit_has_the_wait_in_its_details() -> None:
    """The time to wait is a duration in the body, not a header."""
    error = RequestError("Slow down.", status=429, retry_after=1.5)
    details = PROTOCOL.error_body(error)["error"]["details"]
    assert [item["@type"].rpartition(".")[2] for item in details] == ["QuotaFailure", "RetryInfo"]
    assert details[1]["retryDelay"] == "1.5s"
    assert "retry-after" not in PROTOCOL.error_headers("seed", error)


def test_error_details_name_field_and_reason() -> None:
    """Field and reason are in the details, where Google's libraries read them."""
    error = PROTOCOL.error_body(RequestError("No.", param="contents", code="no_scenario"))
    info, request = error["error"]["details"]
    assert info["reason"] == "NO_SCENARIO"
    assert request["fieldViolations"] == [{"field": "contents", "description": "No."}]


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"x-goog-api-key": "k"}, {}, None),
        ({}, {"key": "k"}, None),
        ({"authorization": "Bearer t"}, {}, None),
        ({}, {}, 403),
        ({"x-goog-api-key": ""}, {}, 400),
    ],
)
def test_guard(headers: dict[str, str], query: dict[str, str], status: int | None) -> None:
    """A key is required in any of its locations; any value is accepted."""
    assert PROTOCOL.guard is not None
    if status is None:
        PROTOCOL.guard(headers, Target(query=query))
        return
    with pytest.raises(RequestError) as caught:
        PROTOCOL.guard(headers, Target(query=query))
    assert caught.value.status == status


# Lookups and routes


def test_models_are_listed_as_the_client_knows_them() -> None:
    """The list and each of its models fit the official types' fields."""
    lookup = Lookup(models=("gemini-2.5-flash", "mock/greet"), any_model=False)
    listed = PROTOCOL.lookups["models"](lookup)["models"]
    assert [model["name"] for model in listed] == ["models/gemini-2.5-flash", "models/mock/greet"]
    one = Lookup(Target({"owner": "mock", "model": "greet"}), models=lookup.models, any_model=False)
    assert PROTOCOL.lookups["model"](one) == listed[1]
    fields = {key: value for key, value in listed[0].items() if "Methods" not in key}
    assert types.Model.model_validate(fields).input_token_limit == 1048576


def test_unknown_model_is_not_found() -> None:
    """An unknown model is a 404 with the service's message."""
    with pytest.raises(RequestError, match=r"models/gpt-4 is not found") as caught:
        PROTOCOL.lookups["model"](Lookup(Target({"model": "gpt-4"}), any_model=False))
    assert caught.value.status == 404


def test_tokens_are_counted_by_the_rule_of_usage() -> None:
    """Tokens are those of the texts, calls and results, wherever the request is written."""
    request = {
        "systemInstruction": {"parts": [{"text": "abcd"}]},
        "contents": [{"role": "user", "parts": [{"text": "abcdefgh"}]}],
    }
    expected = {
        "totalTokens": 3,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}],
    }
    count = PROTOCOL.lookups["count_tokens"]
    assert count(Lookup(request=request)) == expected
    assert count(Lookup(request={"generateContentRequest": request})) == expected


def test_routes_cover_every_version_and_vertex() -> None:
    """All three methods are there for all versions and for both forms of Vertex AI's path."""
    paths = {route.path for route in PROTOCOL.address.routes if route.method == "POST"}
    for method in ("generateContent", "streamGenerateContent", "countTokens"):
        for version in ("v1", "v1beta", "v1alpha"):
            assert f"/{version}/models/{{model}}:{method}" in paths
        for version in ("v1", "v1beta1"):
            tail = f"/publishers/{{publisher}}/models/{{model}}:{method}"
            assert f"/{version}/projects/{{project}}/locations/{{location}}{tail}" in paths
            assert f"/{version}{tail}" in paths
    shared = [r.header for r in PROTOCOL.address.routes if r.method == "GET" and "/v1/" in r.path]
    assert shared == ["x-goog-api-key"] * 5


def test_a_custom_call_is_a_call_with_its_text() -> None:
    """The free text of a custom tool becomes the argument `input`."""
    call = ToolCall("shell", "", ("ls", ' "a"'), custom=True)
    expected = [{"functionCall": {"name": "shell", "args": {"input": 'ls "a"'}}}]
    assert parts(Turn((call,), "tool_calls")) == expected


def test_signatures_of_texts() -> None:
    """A text is signed in its first part, or in an empty part after it, which may be the last."""
    turn = Turn((Text(("Hi", "!"), signature="YQ=="), Text(("Oh", ""), signature="Yg==")), "stop")
    assert [c["content"]["parts"] for c in candidates(turn)] == [
        [{"text": "Hi", "thoughtSignature": "YQ=="}],
        [{"text": "!"}],
        [{"text": "Oh"}],
        [{"text": "", "thoughtSignature": "Yg=="}],
    ]


def test_tools_of_the_service() -> None:
    """Code and its result are two parts; tools that Gemini has are `toolCall` and `toolResponse`;
    others, and results in the form of another API, are not sent."""
    code = ServerTool("code_interpreter", "", "", ('{"code":"1"}',), '{"outcome":"OUTCOME_OK"}')
    search = ServerTool("web_search", "s1", "", ('{"queries":["x"]}',), '[{"type":"web"}]')
    turn = Turn((code, search, ServerTool("mcp", "m1", "echo")), "stop")
    assert parts(turn) == [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {
            "toolCall": {
                "id": "s1",
                "toolType": "GOOGLE_SEARCH_WEB",
                "args": {"queries": ["x"]},
            }
        },
    ]


def test_the_form_of_vertex_ai() -> None:
    """Vertex AI sends a creation time and the kind of traffic, and no index of the first
    candidate and no service tier."""
    turn = Turn((Text(("Hi",)),), "stop", TokenUsage(3, 2))
    value = body(turn, vertex=True)
    assert value["createTime"].startswith("2026-01-0")
    assert value["usageMetadata"]["trafficType"] == "ON_DEMAND"
    assert "serviceTier" not in value["usageMetadata"]
    assert value["candidates"][0].keys() == {"content", "finishReason", "avgLogprobs"}


def test_vertex_ai_has_no_sum_of_log_probabilities() -> None:
    """Only the Gemini API sends the sum; the average is that of the tokens."""
    tokens = (Token("H", -0.25), Token("i", -0.75))
    turn = Turn((Text(("H", "i"), logprobs=True, tokens=tokens),), "stop")
    (own,), (vertex,) = (body(turn, vertex=is_vertex)["candidates"] for is_vertex in (False, True))
    assert own["avgLogprobs"] == vertex["avgLogprobs"] == -0.5
    assert own["logprobsResult"] == {**vertex["logprobsResult"], "logProbabilitySum": -1.0}
    chosen = vertex["logprobsResult"]["chosenCandidates"]
    assert [token["logProbability"] for token in chosen] == [-0.25, -0.75]
