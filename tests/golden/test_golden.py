"""What mockllm does is what it did when the golden record was written."""

from __future__ import annotations

import pytest

from tests.golden.record import CORPUS, GROUPS, OF_CORPUS, changed, digests

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_has_changed(group: str) -> None:
    """Every text of the group has the digest that was committed."""
    if group in OF_CORPUS and not CORPUS.is_dir():
        pytest.skip("no corpus of recorded traffic beside this checkout")
    differing = changed(group, digests(group))
    dump = f"python -m tests.golden.record --only {group} --dump DIR"
    assert not differing, f"{len(differing)} texts differ; to see them: {dump}\n" + "\n".join(
        differing[:100]
    )
