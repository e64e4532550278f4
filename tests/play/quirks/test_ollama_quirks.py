"""The bytes of the quirks of Ollama on their samples, and what they mean for any turn."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings

import mockllm.play.quirks as table
from mockllm.core.timeline import normal
from mockllm.core.turn import TokenUsage, Turn
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.ollama import QUIRKS
from mockllm.play.quirks.samples import CALL, TEXT
from mockllm.play.replay.compilation.encoding import stream
from mockllm.scenario.model import Scenario, Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.ollama.objects import Options
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import plain, play
from tests.strategies import turns

OLLAMA = PROTOCOLS["ollama"]
_HEAD = re.compile(r'"model":"mock-model","created_at":"[^"]*"')
_DURATION = re.compile(r'"\w+_duration":\d+,?')


def body(name: str, scenario: Scenario | None = None) -> str:
    """The stream of a quirk's sample, or of a scenario, with the head of each object as `E` and
    without durations."""
    data = b"".join(play(*table.find(name), "ollama", scenario).data).decode()
    return _DURATION.sub("", _HEAD.sub("E", data))


def text(content: str) -> str:
    return f'{{E,"message":{{"role":"assistant","content":"{content}"}},"done":false}}\n'


def calls(*entries: str) -> str:
    message = f'{{"role":"assistant","content":"","tool_calls":[{",".join(entries)}]}}'
    return f'{{E,"message":{message},"done":false}}\n'


PARIS = '{"id":"call_A1","function":{"index":0,"name":"get_weather","arguments":{"city":"Paris"}}}'
TIME = '{"id":"call_B2","function":{"index":1,"name":"get_time","arguments":{"tz":"CET"}}}'
_END = '{E,"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",'
END = _END + '"prompt_eval_count":12,"eval_count":7,}\n'


def test_framing() -> None:
    """Blank lines, CRLF, no last line end, and separators that JSON may hold as they are."""
    hello = text("Hel") + text("lo") + END
    assert body("ollama-blank-lines") == hello.replace("\n", "\n\n")
    assert body("ollama-line-ends:crlf") == hello.replace("\n", "\r\n")
    assert body("ollama-line-ends:no-last") == hello[:-1]
    separated = "".join(character + "\u2028\u2029\x85" for character in "Hel")
    assert body("ollama-line-separators").startswith(text(separated))


def test_calls() -> None:
    """Calls in the last object, several in one, without ids, with one index, with text."""
    last = END.replace('"content":""', f'"content":"","tool_calls":[{PARIS}]')
    assert body("ollama-calls-in-last") == last
    assert body("ollama-calls-one-object") == calls(PARIS, TIME) + END
    assert body("ollama-call-ids") == calls(PARIS.replace('"id":"call_A1",', "")) + END
    same = TIME.replace('"index":1', '"index":0')
    assert body("ollama-same-index:zero") == calls(PARIS) + calls(same) + END
    without = [call.replace(f'"index":{n},', "") for n, call in enumerate((PARIS, TIME))]
    assert body("ollama-same-index:none") == "".join(map(calls, without)) + END
    string = PARIS.replace('{"city":"Paris"}', json.dumps('{"city":"Paris"}'))
    assert body("ollama-args-string") == calls(string) + END


def test_content() -> None:
    """Thinking between tags, and nulls."""
    tagged = text("<think>\\nLet me") + text(" think.") + text("\\n</think>\\n\\nHel") + text("lo")
    assert body("ollama-think-tags") == tagged + END.replace('_count":7', '_count":11')
    nulls = '"content":null,"tool_calls":[' + PARIS + '],"thinking":null}'
    assert nulls in body("ollama-null-fields")


def test_ends() -> None:
    """No end, half an end, other reasons, fewer counts, an error."""
    hello = text("Hel") + text("lo")
    assert body("ollama-no-done:no-last") == hello
    assert body("ollama-no-done:false") == hello + END.replace(
        '"done":true,"done_reason":"stop"', '"done":false'
    )
    assert body("ollama-done-missing") == hello + END.replace('"done":true,', "")
    assert body("ollama-no-reason") == hello + END.replace('"done_reason":"stop",', "")
    reason = END.replace('"stop"', '"tool_calls"')
    assert body("ollama-done-reason") == calls(PARIS) + reason
    assert body("ollama-counts-missing:prompt") == hello + END.replace(
        '"prompt_eval_count":12,', ""
    )
    error = '{"error":"llama runner process has terminated: exit status 2"}\n'
    assert body("ollama-error-line:later") == hello + error
    assert body("ollama-error-line:first") == error


def test_a_quirk_leaves_other_answers_alone() -> None:
    """One of calls does not change a text."""
    for name in ("calls-in-last", "calls-one-object", "args-string", "done-reason", "call-ids"):
        assert (
            play(*table.find(f"ollama-{name}"), "ollama", TEXT).data == plain(TEXT, "ollama").data
        )
    tags = play(*table.find("ollama-think-tags"), "ollama", CALL)
    assert tags.data == plain(CALL, "ollama").data


@settings(deadline=None, max_examples=15)
@given(turn=turns())
def test_what_quirks_mean(turn: Turn) -> None:
    """The stream of any turn with a quirk decodes to what the meaning of the quirk says."""
    usage = turn.usage or TokenUsage(0, 0)
    for generate in (False, True):
        reply = Reply("any", "0" * 40, "m", Options(generate), usage)
        for quirk in QUIRKS:
            for variant in quirk.variants:
                sent = _decoded(turn, reply, quirk, variant)
                name = f"{quirk.name}:{variant.name}"
                wanted = expected_turn(name, variant, normal(OLLAMA.project(turn)))
                assert _comparable(sent, variant) == _comparable(wanted, variant), name


def _decoded(turn: Turn, reply: Reply, quirk: Quirk, variant: Variant) -> Turn:
    name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
    parts = stream((turn,), OLLAMA, reply, Wire(quirks=(name,)))
    return decode_turn(OLLAMA, OLLAMA.usual.decode(b"".join(part.data for part in parts)))[0]


def _comparable(turn: Turn, variant: Variant) -> Any:
    calls = [(call.name, call.arguments) for call in turn.tool_calls]
    ids = [call.id for call in turn.tool_calls] if variant.ids else []
    return (
        turn.text,
        turn.reasoning,
        calls,
        ids,
        turn.finish,
        turn.finish_raw,
        turn.usage,
        turn.error,
    )
