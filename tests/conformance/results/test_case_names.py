"""The names of cases: one word each, which names the same case again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking import case_specs
from mockllm.checking.cases.scenarios import draw
from mockllm.conformance.case_names import parse_variation, spec_named
from mockllm.core.errors import UsageError
from mockllm.wire.protocols import PROTOCOLS


@given(st.text(max_size=4))
def test_a_variation_is_read_again(seed: str) -> None:
    """`parse_variation` is the inverse of `str`."""
    variation = draw(seed)
    assert parse_variation(str(variation)) == variation
    assert " " not in str(variation)


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
def test_names_are_unique_words_that_name_the_case_again(api: str) -> None:
    """Each name gives the same bytes again, without the arguments that chose the case."""
    specs = list(case_specs(api, variations=1))
    names = [spec.name for spec in specs]
    assert len(set(names)) == len(names)
    assert not any(set(" \t'\"$") & set(name) for name in names)
    for spec in specs[:: max(1, len(specs) // 4)]:
        case = spec_named(spec.name).compile()
        assert case.answer.data == spec.compile().answer.data
        assert case.name == spec.name
        assert spec.name.startswith((case.plain or case).name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sample-call", "begins with no API; there are: "),
        ("chat/sample-cal", "no scenario 'sample-cal' over chat; did you mean 'sample-call'"),
        ("chat/sample-call+chat-index", "there is no quirk 'chat-index'; did you mean"),
        ("chat/sample-call~snip3", "'snip3' is no variation"),
    ],
)
def test_a_name_of_no_case_is_an_error(name: str, message: str) -> None:
    """The message has what is wrong, and the nearest names."""
    with pytest.raises(UsageError, match=message):
        spec_named(name)
