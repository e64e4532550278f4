"""How suites share compiled cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mockllm.checking.cases.build import cached_case
from mockllm.checking.cases.compile import case_specs, cases
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.samples import CALL, LONG_TEXT, TEXT
from tests.checking.cases.test_compile import with_text


@pytest.mark.slow
def test_suites_share_compiled_cases_and_not_their_events() -> None:
    """A second suite gets the same bytes, and events of its own."""
    first = list(cases("chat", [CALL], variations=2, level="payloads"))
    second = list(cases("chat", [replace(CALL)], variations=2, level="payloads"))
    for one, other in zip(first, second, strict=True):
        assert one.answer == other.answer
        assert one.events is not None
        assert other.events is not None
        one.events.decoded.clear()
        assert other.events.decoded
        assert one.events.decoded == other.events.decoded
        if one.plain is not None:
            assert other.plain is not None
            assert other.plain.answer == one.plain.answer


def test_equal_names_do_not_make_scenarios_equal() -> None:
    """A scenario that was edited, or whose JSON has other keys first, is compiled anew."""
    one, other = cached_case(TEXT, "chat"), cached_case(with_text(TEXT, "Bye"), "chat")
    assert (one.expected.text, other.expected.text) == ("Hello", "Bye")
    assert one.name == other.name


def test_a_changed_quirk_is_compiled_anew(monkeypatch) -> None:
    """A quirk that replaces another one of its name is played as it is now."""
    before = cached_case(CALL, "chat", quirk="chat-args-whole")
    replaced = replace(QUIRKS["chat-id-repeated"], name="chat-args-whole")
    monkeypatch.setitem(QUIRKS, "chat-args-whole", replaced)
    after = cached_case(CALL, "chat", quirk="chat-args-whole")
    assert after.answer.data != before.answer.data
    assert after.answer.data == cached_case(CALL, "chat", quirk="chat-id-repeated").answer.data


def test_the_plain_form_of_a_case_is_the_one_of_the_suite() -> None:
    """A case refers to the plain case that the suite has run; alone, it gets an equal one."""
    plain, varied = list(cases("chat", [LONG_TEXT], variations=1, quirks=False))
    assert varied.plain == plain
    _, spec = list(case_specs("chat", [LONG_TEXT], variations=1, quirks=False))
    alone = spec.compile()
    assert alone.plain is not None
    assert alone.plain.answer == plain.answer
