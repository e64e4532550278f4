"""Advice about keys that stand in the wrong place, or are the words of other tools and APIs."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.text import did_you_mean
from mockllm.scenario.reading.definitions import PROPERTIES

_TEXT = "the text of a reply is 'reply: TEXT', or a part '{text: TEXT}'"
_CALL = "a call is a part of 'reply': '{tool: NAME, arguments: {...}}'"
_REASONING = "reasoning is a part of 'reply': '{reasoning: TEXT}'"
_REPLY = "what the model answers is 'reply', one in each turn"
_USER = "what the user says is 'match: {user: TEXT}', or 'request: {user: TEXT}' of a turn"
_DELAY = "write 'timing: {ttft: 2s}' in the turn, or '{pause: 2s}' between parts"
_FINISH = "why the answer ends is 'finish', such as 'finish: length'"
_REPEAT = "how often a turn answers is 'times', such as 'times: 3'"
_DRAWN = "replies of which one is drawn are 'one_of'"
_TRIES = "what earlier tries of a turn get is 'attempts', such as '[{http: 429}]'"
_INPUT, _OUTPUT = "the tokens of the request are 'input'", "the tokens of the answer are 'output'"
_BODY = "a field of the request is a condition on its body, such as 'body: {temperature: 0}'"
_CASSETTE = "this is a cassette: serve it with --cassettes, or import it with mockllm import"
_STATUS = "the status of an error is 'http: 429' in the turn, or 'status' under 'http'"
_STUBS = (
    "a scenario has 'scenario: NAME', 'match' and 'turns'; `mockllm docs coming-from` compares it "
    "with the stubs of other tools"
)

_WORDS: dict[str, str] = {
    **dict.fromkeys(("content", "message"), _TEXT),
    **dict.fromkeys(("tool_calls", "tool_call", "function_call", "tool_use"), _CALL),
    "function": _CALL + "; one of 'tools' has 'name', 'description' and 'parameters' itself",
    **dict.fromkeys(("thinking", "reasoning_content"), _REASONING),
    **dict.fromkeys(("response", "return_value", "side_effect", "returns", "output_text"), _REPLY),
    **dict.fromkeys(("prompt", "messages", "userMessage", "user_message"), _USER),
    **dict.fromkeys(
        ("delay", "delayMs", "delay_ms", "sleep", "wait", "fixedDelayMilliseconds", "latencyMs"),
        _DELAY,
    ),
    **dict.fromkeys(("finish_reason", "finishReason", "stop_reason", "stopReason"), _FINISH),
    **dict.fromkeys(("once", "count"), _REPEAT),
    **dict.fromkeys(("random", "oneOf"), _DRAWN),
    **dict.fromkeys(("retries", "retry", "tries"), _TRIES),
    **dict.fromkeys(("prompt_tokens", "input_tokens", "promptTokenCount"), _INPUT),
    **dict.fromkeys(("completion_tokens", "output_tokens", "candidatesTokenCount"), _OUTPUT),
    **dict.fromkeys(("temperature", "max_tokens", "top_p", "response_format"), _BODY),
    **dict.fromkeys(("chunks", "chunk_size", "chunkSize", "tokens"), "fragments are 'split'"),
    **dict.fromkeys(("matches", "pattern", "match_regex"), "a regular expression is 'regex'"),
    **dict.fromkeys(("equal_to", "equalTo", "is", "eq"), "a whole text is 'equals'"),
    **dict.fromkeys(("sequenceIndex", "turnIndex"), "the order is that of 'turns'"),
    **dict.fromkeys(
        ("regex", "contains", "equals"), "it is about one text, such as 'user: {regex: ...}'"
    ),
    **dict.fromkeys(("input_schema", "inputSchema"), "the JSON Schema of a tool is 'parameters'"),
    **dict.fromkeys(("interactions", "http_interactions"), _CASSETTE),
    **dict.fromkeys(("mappings", "stubs", "handlers", "expectations"), _STUBS),
    "fixtures": "these are fixtures of aimock: import them with mockllm import",
    **dict.fromkeys(("status", "status_code", "statusCode"), _STATUS),
    "stream": "the request says whether it is for a stream; 'match: {stream: true}' asks for that",
    "role": "'reply' is what the model says; " + _TEXT,
    "name": "the name of a scenario is 'scenario: NAME', that of a tool 'tool: NAME'",
    "match": "it belongs into the scenario, beside 'turns'; what the request for one turn must "
    "have is its 'request'",
}
"""What to write in place of keys of other tools, of APIs, and of people who guess."""

_MEANT = {
    "openai": ("chat", "responses", "completions"),
    "claude": ("anthropic",),
    "google": ("gemini",),
    "aws": ("bedrock",),
    "end_turn": ("stop",),
    "stop_sequence": ("stop",),
    "tool_use": ("tool_calls",),
    "function_call": ("tool_calls",),
    "max_tokens": ("length",),
    "safety": ("content_filter",),
}
"""By the words of APIs and people, the values that are meant."""


def advise_value(value: str, known: Iterable[str]) -> str:
    """What to write in place of a value, as the rest of a sentence; "" where nothing is known."""
    meant = [name for name in _MEANT.get(value.lower(), ()) if name in known]
    return f"you may mean {', '.join(meant)}" if meant else did_you_mean(value.lower(), known)


_IN_A_PART = "a part of 'reply', such as '{part}'"
_PLACES = {
    "timing": "'timing' of the turn",
    "defaults": "'defaults' of the scenario",
    "match": "'match' of the scenario",
    "request": "'request' of a turn",
    "wire": "'wire' of a turn",
    "text_part": _IN_A_PART,
    "tool_part": _IN_A_PART,
    "turn": "a turn",
    "scenario": "the scenario, beside 'turns'",
}
"""Where keys may stand, by their definition: the most special place first."""

_MOST_PLACES = 2
_PARTS = tuple(name for name in PROPERTIES if name.endswith("_part"))
_KINDS = {name.removesuffix("_part") for name in _PARTS}
_LANGUAGE = {
    frozenset(PROPERTIES[name])
    for name in (*_PLACES, *_PARTS, "attempt", "choice", "drawn_reply", "when", "included")
} | {frozenset({*_KINDS, "use"})}
"""The keys of the mappings whose keys are mistaken for one another. Others, such as a fault, have
keys that mean something else elsewhere."""
_OF_PARTS = frozenset({"split", "every"})
"""Keys by which a table is known as that of a part, or of what holds for parts."""


def advise(key: str, known: Iterable[str]) -> str:
    """What to do about an unknown key, as the rest of a sentence; "" where nothing is known.

    Args:
        known: the keys that its place has.
    """
    known = tuple(known)
    number = next((name for name in (f"{key}s", key.removesuffix("s")) if name in known), None)
    if number is not None:
        return f"did you mean {number!r}?"
    if key in _WORDS:
        return _WORDS[key]
    places: list[str] = []
    of_another_part = any(key in PROPERTIES[kind] for kind in _PARTS)
    if frozenset(known) in _LANGUAGE and (_OF_PARTS.isdisjoint(known) or not of_another_part):
        places = [
            place.format(part=_example(definition, key))
            for definition, place in _PLACES.items()
            if key in PROPERTIES[definition]
        ]
    if places:
        return "it belongs into " + ", or ".join(places[:_MOST_PLACES])
    return did_you_mean(key.lower(), known)


def _example(definition: str, key: str) -> str:
    """A part of a reply with a key: `{tool: ..., arguments: ...}`."""
    kind = definition.removesuffix("_part")
    return f"{{{key}: ...}}" if key == kind else f"{{{kind}: ..., {key}: ...}}"
