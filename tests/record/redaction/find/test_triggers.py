"""Which patterns a text needs: the same for short and for long texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.find.patterns import Triggers, has_long_run
from tests.cases import for_all

TRIGGERS = Triggers(
    [(0, ("ghp_",)), (1, ("AKIA", "ASIA")), (2, ("SK",)), (3, (":AA",)), (4, ("hvs.", "lin_api_"))],
    [(5, ("://",)), (6, ("earer",))],
)
RUN = "abcdefgh_1234567"
FILL = "Plain words and no more. " * 200


@for_all(
    ("text", "found"),
    [
        ("ghp_", [0]),
        ("(GHP_x)", [0]),
        ("xghp_", []),
        ("ghpx", []),
        ("AKIA12", [1]),
        ("x-ASIA", [1]),
        ("xAKIA", [1]),
        ("akia", []),
        ("TASK", [2]),
        ("1:AA", [3]),
        ("hvs.x", [4]),
        ("lin_api_x", [4]),
        ("a://b", [5]),
        ("Bearer AKIA ghp_", [0, 1, 6]),
    ],
)
def test_the_triggers_in_a_text(text: str, found: list[int]) -> None:
    """Keys only beside a long run; other triggers always."""
    assert TRIGGERS.find(f"{text} {RUN}") == found
    assert TRIGGERS.find(text) == [one for one in found if one >= 5]
    assert TRIGGERS.find(f"{FILL} {text} {RUN}") == found


@given(st.text(alphabet="aZ0_-. /ä\ud800", max_size=60))
def test_a_long_run(text: str) -> None:
    """16 letters, digits, `_` and `-` in a row."""
    longest = run = 0
    for character in text:
        run = run + 1 if character in "aZ0_-" else 0
        longest = max(longest, run)
    assert has_long_run(text) == (longest >= 16)
