"""The bytes of the quirks of Cohere, on their samples."""

from __future__ import annotations

from typing import Any

from mockllm.play.quirks.cohere import QUIRKS
from tests.play.quirks.playing import events, play

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}


def played(name: str, variant: str = "") -> list[Any]:
    """The events of a variant on its sample."""
    quirk = BY_NAME[name]
    found = quirk.variant(variant)
    assert found is not None
    return events(play(quirk, found, "cohere"))


def arguments(values: list[Any]) -> list[Any]:
    """The arguments in each event of a call that has some."""
    calls = (
        value["delta"]["message"]["tool_calls"]
        for value in values
        if isinstance(value, dict) and value["type"] in ("tool-call-start", "tool-call-delta")
    )
    return [call["function"]["arguments"] for call in calls]


def test_calls_without_arguments() -> None:
    """cohere-zero-arg: the text `null`, nothing at all, or null."""
    assert arguments(played("cohere-zero-arg", "null")) == ["", "null"]
    assert arguments(played("cohere-zero-arg", "empty")) == [""]
    assert arguments(played("cohere-zero-arg", "none")) == [None]


def test_blocks_share_an_index() -> None:
    """cohere-content-index: reasoning and text are both at 0."""
    found = played("cohere-content-index")
    blocks = [value for value in found if "content-" in str(value)]
    assert {value["index"] for value in blocks if value["type"].startswith("content-")} == {0}
    assert [value["type"] for value in blocks].count("content-start") == 2


def test_how_an_answer_ends() -> None:
    """cohere-error-finish, cohere-two-usages, cohere-no-done."""
    for variant, ending in {
        "error": {"finish_reason": "ERROR", "error": "the model failed"},
        "bare": {"finish_reason": "ERROR"},
        "timeout": {"finish_reason": "TIMEOUT"},
    }.items():
        *_, end, done = played("cohere-error-finish", variant)
        assert {key: value for key, value in end["delta"].items() if key != "usage"} == ending
        assert done == "[DONE]"
    usage = played("cohere-two-usages")[-2]["delta"]["usage"]
    assert usage["tokens"] == {"input_tokens": 12, "output_tokens": 7}
    assert usage["billed_units"] == {"input_tokens": 6, "output_tokens": 3}
    assert played("cohere-no-done")[-1]["type"] == "message-end"
