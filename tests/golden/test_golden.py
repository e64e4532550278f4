"""The behaviour of mockllm equals the golden record."""

from __future__ import annotations

import pytest

from tests.golden.record import CORPUS, GROUPS, OF_CORPUS, changed, digests

FAST = ("wire", "requests", "verify")
"""The groups that are quick enough for `make check`; they play every scenario over every API."""


@pytest.mark.parametrize(
    "group", [pytest.param(one, marks=() if one in FAST else pytest.mark.slow) for one in GROUPS]
)
def test_nothing_has_changed(group: str) -> None:
    """Every text of the group has the digest that was committed."""
    if group in OF_CORPUS and not CORPUS.is_dir():
        pytest.skip("no corpus of recorded traffic beside this checkout")
    differing = changed(group, digests(group))
    dump = f"python -m tests.golden.record --only {group} --dump DIR"
    assert not differing, f"{len(differing)} texts differ; to see them: {dump}\n" + "\n".join(
        differing[:100]
    )
