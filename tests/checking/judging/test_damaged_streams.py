"""What a stream has sent counts, also where a later part of it is damaged or an SDK reads it."""

from __future__ import annotations

import json
from typing import Any

from examples.accumulators import BedrockAccumulator
from examples.accumulators.completions import CompletionsAccumulator
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import case_specs, examine
from mockllm.wire.protocols import PROTOCOLS


class KeepsTheFinish(CompletionsAccumulator):
    """Keeps the finish reason beside an error that comes later."""

    sent: str | None = None

    def _choice(self, choice: Any, *, failing: bool) -> None:
        if not failing:
            self.sent = self.sent or choice.get("finish_reason") or None
        super()._choice(choice, failing=failing)

    def outcome(self) -> Any:
        outcome = super().outcome()
        object.__setattr__(outcome, "finish", outcome.finish or self.sent)
        return outcome


def test_a_finish_that_was_sent_is_no_pretence() -> None:
    """A client that has the finish reason when a chunk behind it breaks may keep it."""

    def make() -> ReferenceBytes:
        probe = ReferenceBytes("completions")
        probe._accumulator = KeepsTheFinish()
        return probe

    specs = case_specs("completions", variations=3)
    broken = [spec.compile() for spec in specs if spec.quirk == "sse-malformed-json"]
    assert len(broken) > 3
    assert [str(one) for one in examine(make, broken, level="bytes").failures] == []


def test_the_damaged_event_has_content() -> None:
    """The event that is damaged stands before the end, over every API."""
    for api in PROTOCOLS:
        carrier, is_end = PROTOCOLS[api].usual, PROTOCOLS[api].events.is_end
        if carrier.name != "sse":
            continue
        for spec in case_specs(api, variations=3):
            if spec.quirk != "sse-malformed-json":
                continue
            data = b"".join(spec.compile().chunks)
            frames = [frame.data for frame in carrier.decode(data) if frame.data]
            at = next(n for n, text in enumerate(frames) if not _is_json(text))
            assert not any(is_end(json.loads(text)) for text in frames[:at]), spec.name


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return text == "[DONE]"
    return True


class AsAnSdkOfAws(BedrockAccumulator):
    """Takes the members of the union that SDKs hand on: an error frame is none of them."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        return None if "error" in payload else super().feed(payload, event)


def test_an_error_frame_of_aws_is_no_payload() -> None:
    """No SDK of AWS hands on `{"error": ...}`; a client that reads the bytes reads it itself."""
    specs = [spec.compile() for spec in case_specs("bedrock", variations=1, level="payloads")]
    assert [str(one) for one in examine(AsAnSdkOfAws, specs).failures] == []

    name = "bedrock/sample-text+bedrock-error-frame"
    assert name not in {spec.name for spec in specs}
    assert name in {spec.name for spec in case_specs("bedrock", variations=0)}
