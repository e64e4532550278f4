"""The bytes of the quirks of the legacy Completions, on their samples."""

from __future__ import annotations

from typing import Any

from mockllm.play.quirks.completions import QUIRKS
from mockllm.play.quirks.samples import TEXT
from tests.play.quirks.playing import events, plain, play

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
HEL, LO, FINISH = (0, "Hel", None), (0, "lo", None), (0, "", "stop")
END: list[Any] = [[], "[DONE]"]
"""The chunk with the usage, and what ends the stream."""


def played(name: str, variant: str = "") -> list[Any]:
    """The events of a variant on its sample."""
    quirk = BY_NAME[name]
    found = quirk.variant(variant)
    assert found is not None
    return events(play(quirk, found, "completions"))


def choices(values: list[Any]) -> list[Any]:
    """Index, text and finish reason of each choice, or the choices that are none; `[DONE]`."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif not value["choices"]:
            found.append(value["choices"])
        else:
            found += [
                (choice["index"], choice.get("text", "absent"), choice["finish_reason"])
                for choice in value["choices"]
            ]
    return found


def test_the_sample() -> None:
    """What the quirks change: two fragments, the finish reason, the usage, `[DONE]`."""
    assert choices(events(plain(TEXT, "completions"))) == [HEL, LO, FINISH, *END]


def test_ids() -> None:
    """compl-id-changes: a new id in each chunk, of either API."""
    for variant, prefix in (("each", "cmpl-"), ("prefix", "chatcmpl-")):
        ids = [value["id"] for value in played("compl-id-changes", variant)[:-1]]
        assert ids == [f"{prefix}{number}" for number in range(4)]


def test_the_last_text() -> None:
    """compl-text-absent: `text` is missing, or null; compl-finish-with-text: it has the end."""
    absent, null = (played("compl-text-absent", name) for name in ("absent", "null"))
    assert choices(absent) == [HEL, LO, (0, "absent", "stop"), *END]
    assert choices(null) == [HEL, LO, (0, None, "stop"), *END]
    assert choices(played("compl-finish-with-text")) == [HEL, (0, "lo", "stop"), *END]


def test_finish_reasons() -> None:
    """compl-finish-twice, compl-finish-never, compl-finish-empty, compl-no-done."""
    assert choices(played("compl-finish-twice")) == [HEL, LO, FINISH, FINISH, *END]
    assert choices(played("compl-finish-never", "done")) == [HEL, LO, *END]
    assert choices(played("compl-finish-never", "end")) == [HEL, LO]
    empty = [(0, "Hel", ""), (0, "lo", ""), FINISH, *END]
    assert choices(played("compl-finish-empty")) == empty
    assert choices(played("compl-no-done")) == [HEL, LO, FINISH, []]


def test_choices() -> None:
    """compl-no-choices: [] or null; compl-n-choices: a second choice, before or behind."""
    assert choices(played("compl-no-choices", "empty")) == [HEL, LO, FINISH, [], *END]
    assert choices(played("compl-no-choices", "null")) == [HEL, LO, FINISH, None, None, "[DONE]"]
    other = [(1, "(Hel)", None), (1, "(lo)", None), (1, "", "length")]
    pairs = list(zip([HEL, LO, FINISH], other, strict=True))
    behind = [choice for pair in pairs for choice in pair]
    before = [choice for pair in pairs for choice in reversed(pair)]
    assert choices(played("compl-n-choices", "interleaved")) == [*behind, *END]
    assert choices(played("compl-n-choices", "one-first")) == [*before, *END]


def test_usage_so_far() -> None:
    """compl-usage-every-chunk: totals that grow."""
    usages = [value["usage"] for value in played("compl-usage-every-chunk")[:-1]]
    assert [usage["completion_tokens"] for usage in usages] == [2, 4, 7, 7]
    assert {usage["prompt_tokens"] for usage in usages} == {12}
