"""On which samples, and under which cuts, quirks are played."""

from __future__ import annotations

import pytest

from mockllm.checking.cases.build import changes
from mockllm.checking.cases.compile import case_specs, cases
from mockllm.checking.cases.scenarios import PLAIN
from tests.apis import OVER_HTTP
from tests.cases import for_all

every_api = for_all("api", OVER_HTTP)
every_level = for_all("level", ["payloads", "bytes"])


def _names(api, **options) -> list[str]:
    return [spec.name for spec in case_specs(api, **options)]


@pytest.mark.slow
def test_a_quirk_is_played_on_two_calls_of_one_tool() -> None:
    """chat-index-all-zero on calls of different tools alone lets a client pass that keys calls by
    index and name."""
    names = _names("chat")
    for sample in ("two-calls", "two-same", "interleaved"):
        assert f"chat/sample-{sample}+chat-index-all-zero" in names


@pytest.mark.slow
@every_api
def test_a_quirk_is_played_where_it_changes_something(api) -> None:
    """Each quirk changes the stream of every sample on which it is played."""
    for case in cases(api, variations=0):
        if case.quirk:
            assert case.plain is not None
            assert changes(case.answer, case.plain.answer), case.name


@pytest.mark.slow
def test_a_pair_that_no_client_can_read_is_left_out() -> None:
    """Without indexes and ids, a second call of one tool looks like a repeated name."""
    names = _names("chat", variations=0)
    assert "chat/sample-call+chat-index-missing:empty-id" in names
    assert "chat/sample-interleaved+chat-index-missing:empty-id" in names
    assert "chat/sample-two-same+chat-index-missing:empty-id" not in names


@pytest.mark.large
@pytest.mark.slow
@every_level
@every_api
def test_quirks_are_played_under_cuts(api, level) -> None:
    """Most quirks are also played with other fragments, groups or chunks; huge events and those
    that cut the bytes themselves are not."""
    cut = {}
    for spec in case_specs(api, level=level):
        if spec.quirk:
            cut.setdefault(spec.quirk, 0)
            cut[spec.quirk] += spec.variation != PLAIN
    uncut = {name.partition(":")[0] for name, count in cut.items() if count == 0}
    assert uncut <= {"sse-huge-event", "sse-chunk-boundaries", "sse-utf8-split"}
    assert max(cut.values()) == 3
