"""Which tests a usual run leaves out: of those that repeat one check over hundreds of cases.

`MOCKLLM_QUICK=1` (`make check`) runs a third of that, and of all other tests with parameters.
`MOCKLLM_ALL=1` runs all of them, `MOCKLLM_SAMPLE=1` (2, ...) another part. A file that is named on
the command line is run whole. What is left out is counted at the end of the run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar
from zlib import crc32

__all__ = ["ALL", "SHARES", "is_left_out", "part_of"]

ALL = bool(os.environ.get("MOCKLLM_ALL"))
_QUICK = bool(os.environ.get("MOCKLLM_QUICK"))
_PART = int(os.environ.get("MOCKLLM_SAMPLE", "0"))
_T = TypeVar("_T")

SHARES = {
    "tests/checking/conversations/test_conversations.py": 9,
    "tests/checking/conversations/test_right_clients.py": 9,
    "tests/checking/judging/test_mutants.py": 16,
    "tests/checking/judging/test_received.py": 16,
    "tests/checking/reference/test_corpus.py": 2,
    "tests/checking/reference/test_lines.py": 2,
    "tests/checking/reference/test_material.py": 16,
    "tests/checking/reference/test_material_bytes.py": 16,
    "tests/checking/reference/test_quirks.py": 16,
    "tests/checking/cuts/test_clients.py": 16,
    "tests/clients/test_anthropic_sdk.py": 9,
    "tests/clients/test_google_sdk.py": 9,
    "tests/clients/test_google_wire.py": 3,
    "tests/clients/test_openai_async.py": 9,
    "tests/clients/test_openai_sdk.py": 9,
    "tests/clients/test_strict_wire.py": 9,
    "tests/clients/test_vercel_node.py": 9,
    "tests/conformance/test_measured_again.py": 16,
    "tests/importers/test_corpus.py": 3,
    "tests/protocols/test_openai_chat_corpus.py": 2,
    "tests/quirks/test_block_quirk_laws.py": 16,
    "tests/quirks/test_chat_envelope.py": 3,
    "tests/quirks/test_chat_identity.py": 3,
    "tests/quirks/test_event_quirk_laws.py": 16,
    "tests/quirks/test_framing_laws.py": 16,
    "tests/quirks/test_variants.py": 9,
    "tests/sixth_protocol/test_laws.py": 2,
    "tests/test_laws.py": 9,
    "tests/tools/test_sdks.py": 2,
}
"""By file: one in so many of its tests with parameters is run."""


def part_of(items: Sequence[_T], share: int) -> list[_T]:
    """One in `share` of some items, by their texts; all of them with `MOCKLLM_ALL`."""
    if ALL:
        return list(items)
    return [item for item in items if crc32(str(item).encode()) % share == _PART % share]


def is_left_out(nodeid: str, named: Sequence[str]) -> bool:
    """Whether a usual run leaves a test out.

    Args:
        named: the files on the command line.
    """
    file, _, test = nodeid.partition("::")
    share = SHARES.get(file, 1) * (3 if _QUICK else 1)
    if ALL or share == 1 or "[" not in test:
        return False
    if any(Path(one).name == Path(file).name for one in named):
        return False
    return not part_of([nodeid], share)
