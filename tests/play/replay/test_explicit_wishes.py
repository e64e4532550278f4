"""The law of explicit wishes: what a scenario says of an answer is sent, or refused when it is
loaded, or listed by `mockllm validate --losses`. It is never left out without a word.

The keys are those of the schema, so a new one without a sample here fails.
"""

from __future__ import annotations

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.loading import loads
from mockllm.play.replay.losses import find_losses
from mockllm.play.replay.turn_answer import turn_answer, usual_request
from mockllm.scenario.reading.definitions import PROPERTIES
from mockllm.wire.protocols import PROTOCOLS

TEXT = "{text: one two}"
CALL = "{tool: find, id: call_1, arguments: {a: 1}}"
IMAGE = "{image: {base64: iVBORw0KGgo=, type: image/png}}"
SOUND = "{audio: {base64: UklGRg==, type: audio/wav}, transcript: a b}"
HOSTED = "{server_tool: web_search, input: {query: x}}"
CITED = '{text: one two, citations: [{url: "https://a.example/"}]}'

# By definition and key: a turn without the key, and with it.
SAMPLES: dict[tuple[str, str], tuple[str, str]] = {
    ("turn", "finish"): (f"reply: {TEXT}", f"reply: {TEXT}, finish: length"),
    ("turn", "finish_raw"): (f"reply: {TEXT}", f"reply: {TEXT}, finish_raw: guardrail_intervened"),
    ("turn", "stop_sequence"): (f"reply: {TEXT}", f"reply: {TEXT}, stop_sequence: END"),
    ("turn", "usage"): (f"reply: {TEXT}", f"reply: {TEXT}, usage: {{input: 77}}"),
    ("turn", "service_tier"): (f"reply: {TEXT}", f"reply: {TEXT}, service_tier: flex"),
    ("turn", "fingerprint"): (f"reply: {TEXT}", f"reply: {TEXT}, fingerprint: fp_own"),
    ("turn", "choices"): (f"reply: {TEXT}", f"reply: {TEXT}, choices: [{{reply: other}}]"),
    ("turn", "timing"): (f"reply: {TEXT}", f"reply: {TEXT}, timing: {{ttft: 10ms}}"),
    ("turn", "wire"): (f"reply: {TEXT}", f"reply: {TEXT}, wire: {{segments: [3]}}"),
    ("turn", "fault"): (f"reply: {TEXT}", f"reply: {TEXT}, fault: {{status: {{status: 503}}}}"),
    ("turn", "headers"): (f"reply: {TEXT}", f"reply: {TEXT}, headers: {{x-own: [a, b]}}"),
    ("turn", "http"): (f"reply: {TEXT}", "http: 503"),
    ("turn", "retry_after"): ("http: 503", "http: 503, retry_after: 2s"),
    ("turn", "error"): ("http: 503", "http: 503, error: gone"),
    ("turn", "reply"): (f"reply: {TEXT}", "reply: {text: other}"),
    ("text_part", "text"): ("reply: {text: one}", "reply: {text: two}"),
    ("text_part", "citations"): (f"reply: {TEXT}", f"reply: {CITED}"),
    ("text_part", "logprobs"): (
        "reply: {text: one}",
        "reply: {text: one, logprobs: [{token: one, logprob: -0.5}]}",
    ),
    ("text_part", "signature"): (f"reply: {TEXT}", "reply: {text: one two, signature: c2ln}"),
    ("text_part", "split"): (f"reply: {TEXT}", "reply: {text: one two, split: words}"),
    ("text_part", "every"): (
        "reply: {text: one two, split: words}",
        "reply: {text: one two, split: words, every: 5ms}",
    ),
    ("reasoning_part", "reasoning"): (f"reply: {TEXT}", f"reply: [{{reasoning: hm}}, {TEXT}]"),
    ("reasoning_part", "signature"): (
        f"reply: [{{reasoning: hm}}, {TEXT}]",
        f"reply: [{{reasoning: hm, signature: c2ln}}, {TEXT}]",
    ),
    ("reasoning_part", "summary"): (
        f"reply: [{{reasoning: hm}}, {TEXT}]",
        f"reply: [{{reasoning: hm, summary: true}}, {TEXT}]",
    ),
    ("refusal_part", "refusal"): (f"reply: {TEXT}", f"reply: [{TEXT}, {{refusal: no}}]"),
    ("tool_part", "tool"): (f"reply: {TEXT}", f"reply: {CALL}"),
    ("tool_part", "id"): (f"reply: {CALL}", "reply: {tool: find, id: call_2, arguments: {a: 1}}"),
    ("tool_part", "arguments"): (
        f"reply: {CALL}",
        "reply: {tool: find, id: call_1, arguments: {a: 2}}",
    ),
    ("tool_part", "malformed"): (
        f"reply: {CALL}",
        "reply: {tool: find, id: call_1, arguments: '{\"a', malformed: true}",
    ),
    ("tool_part", "input"): (f"reply: {CALL}", "reply: {tool: find, id: call_1, input: plain}"),
    ("tool_part", "signature"): (
        f"reply: {CALL}",
        "reply: {tool: find, id: call_1, arguments: {a: 1}, signature: c2ln}",
    ),
    ("server_tool_part", "server_tool"): (f"reply: {TEXT}", f"reply: [{HOSTED}, {TEXT}]"),
    ("server_tool_part", "input"): (
        f"reply: [{HOSTED}, {TEXT}]",
        f"reply: [{{server_tool: web_search, input: {{query: y}}}}, {TEXT}]",
    ),
    ("server_tool_part", "id"): (
        f"reply: [{HOSTED}, {TEXT}]",
        f"reply: [{{server_tool: web_search, id: srvtoolu_9, input: {{query: x}}}}, {TEXT}]",
    ),
    ("server_tool_part", "name"): (
        f"reply: [{HOSTED}, {TEXT}]",
        f"reply: [{{server_tool: web_search, name: own, input: {{query: x}}}}, {TEXT}]",
    ),
    ("server_tool_part", "output"): (
        f"reply: [{HOSTED}, {TEXT}]",
        f"reply: [{{server_tool: web_search, input: {{query: x}}, output: []}}, {TEXT}]",
    ),
    ("image_part", "image"): (f"reply: {TEXT}", f"reply: [{TEXT}, {IMAGE}]"),
    ("audio_part", "audio"): (f"reply: {TEXT}", f"reply: {SOUND}"),
    ("audio_part", "transcript"): (
        "reply: {audio: {base64: UklGRg==, type: audio/wav}}",
        f"reply: {SOUND}",
    ),
    ("turn", "gate"): (f"reply: {TEXT}", f"reply: {TEXT}, gate: door"),
    ("gate_part", "gate"): (f"reply: [{TEXT}]", f"reply: [{TEXT}, {{gate: door}}]"),
    ("pause_part", "pause"): (f"reply: [{TEXT}]", f"reply: [{{pause: 5ms}}, {TEXT}]"),
    ("error_part", "error"): (f"reply: {TEXT}", f"reply: [{TEXT}, {{error: gone}}]"),
    ("frame_part", "frame"): (
        f"reply: [{TEXT}]",
        f"reply: [{TEXT}, {{frame: {{data: {{x: 1}}}}, api: API}}]",
    ),
    ("frame_part", "first"): (
        f"reply: [{TEXT}]",
        f"reply: [{{frame: {{data: {{x: 1}}}}, api: API, first: true}}, {TEXT}]",
    ),
    **{
        ("extra", place): (
            f"reply: {CALL}",
            f"reply: {CALL}, extra: {{API: {{{place}: {{x: 1}}}}}}",
        )
        for place in (
            *(
                "event",
                "choice",
                "candidate",
                "response",
                "interaction",
                "metadata",
                "call",
                "usage",
            ),
        )
    },
    **{
        ("extra", place): (
            f"reply: {TEXT}",
            f"reply: {TEXT}, extra: {{API: {{{place}: {{x: 1}}}}}}",
        )
        for place in ("message", "content", "text", "finish", "end")
    },
    ("extra", "reasoning"): (
        f"reply: [{{reasoning: hm}}, {TEXT}]",
        f"reply: [{{reasoning: hm}}, {TEXT}], extra: {{API: {{reasoning: {{field: reasoning}}}}}}",
    ),
}

# What a request must have for an answer that has everything.
ASKING = {
    "chat": {"n": 2, "logprobs": True, "stream_options": {"include_usage": True}},
    "completions": {"n": 2, "logprobs": 1, "stream_options": {"include_usage": True}},
    "responses": {"include": ["message.output_text.logprobs"]},
    "gemini": {"generationConfig": {"candidateCount": 2, "responseLogprobs": True}},
    "ollama": {"logprobs": True},
    "cohere": {"logprobs": True},
}

# These say which answer is sent, or when; or they are of routes, which have no API, or of sockets.
ELSEWHERE = {
    "turn": {"answer", "attempts", "expect", "extra", "go_to", "job", "name", "obey", "one_of"}
    | {"recorded", "repeat", "request", "template", "times", "when"}
    | {"client", "hears", "service", "speech"},
    "text_part": set(),
    "reasoning_part": {"every", "split"},
    "refusal_part": {"every", "split"},
    "tool_part": {"every", "split", "refused"},
    "server_tool_part": {"every", "split"},
    "image_part": {"every", "signature"},
    "audio_part": {"every", "split", "fragment_bytes", "signature"},
    "pause_part": set(),
    "gate_part": set(),
    "error_part": set(),
    "frame_part": {"api"},
    "extra": set(),
}


# The losses of a whole part, which say what becomes of all its keys.
WHOLE = {
    "reasoning_part": "the reasoning is not sent",
    "tool_part": "of 1 calls 0 are sent",
    "server_tool_part": "of hosted tools 0 are sent",
    "audio_part": "sound is not sent",
    "image_part": "images are not sent",
}
KEYS = {("tool_part", "id"): "ids of calls are not sent"}


def test_every_key_has_a_sample() -> None:
    """Each key of a turn and of its parts, and each place of `extra`."""
    named = {(table, key) for table, keys in ELSEWHERE.items() for key in keys}
    keys = {(table, key) for table in ELSEWHERE for key in PROPERTIES[table]}
    assert keys == named | SAMPLES.keys()


@pytest.mark.parametrize("api", PROTOCOLS)
def test_a_wish_is_sent_refused_or_listed(api: str) -> None:
    """Over each API: the answer, streamed or not, differs; or the scenario is refused; or there is
    a loss more."""
    silent = [
        f"{table}.{key}"
        for (table, key), (without, given) in SAMPLES.items()
        if not _has_effect(api, without, given)
        and not _is_listed(api, given, WHOLE.get(table), KEYS.get((table, key)))
    ]
    assert silent == []


def test_what_has_no_effect_is_seen() -> None:
    """Two turns that say the same of an answer have the same one."""
    for api in PROTOCOLS:
        assert not _has_effect(api, f"reply: {TEXT}", f"reply: {TEXT}, expect: {{text: other}}")


def _has_effect(api: str, without: str, given: str) -> bool:
    try:
        before, after = _answers(api, without), _answers(api, given)
    except ScenarioError:
        return True
    return before != after


def _is_listed(api: str, turn: str, *losses: str | None) -> bool:
    found = list(map(str, _answers(api, turn)[2:]))
    return any(loss in line for loss in losses if loss is not None for line in found)


def _answers(api: str, turn: str) -> tuple[object, ...]:
    """Both forms of an answer, and what is lost of it."""
    (scenario,) = loads(f"{{scenario: s, apis: [{api}], turns: [{{{turn.replace('API', api)}}}]}}")
    protocol = PROTOCOLS[api]
    fields = {**protocol.client.usage, **ASKING.get(api, {})}
    sent = []
    for stream in (True, False):
        request = usual_request(scenario, protocol, stream=stream, fields=fields)
        sent.append(_sent(turn_answer(scenario, 0, protocol, request)))
    return (*sent, *map(str, find_losses(scenario, PROTOCOLS)))


def _sent(answer: HttpAnswer) -> tuple[object, ...]:
    return answer.status, answer.headers, answer.data, answer.times, answer.fault, answer.gates
