"""The texts of a turn in which values of the request may stand."""

from mockllm.scenario.model import TurnSpec
from mockllm.scenario.part_model import TextPart, ToolPart
from mockllm.scenario.turn_texts import look_like_templates


def test_what_looks_like_a_template() -> None:
    """Paths that mockllm knows and groups of regular expressions are found, other braces not."""
    turn = TurnSpec(
        reply=(
            TextPart("Hello {{ request.user }}"),
            TextPart("{{ name }} and {id} and {{}}"),
            ToolPart("f", arguments='{"a":["\\\\g<1>"]}'),
        )
    )
    assert list(look_like_templates(turn)) == [
        (("reply", 0, "text"), "{{ request.user }}"),
        (("reply", 2, "arguments", "a", 0), "\\g<1>"),
    ]
    assert dict(look_like_templates(turn, ["{id}"]))["reply", 1, "text"] == "{id}"
