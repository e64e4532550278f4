"""The table of protocols imports what is played, and nothing more."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRINTED = "import sys; print(*(name for name in sys.modules if name.startswith('mockllm.')))"


def imported(code: str) -> set[str]:
    """The modules of mockllm that a process has after running some code."""
    command = [sys.executable, "-c", f"{code}\n{PRINTED}"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_addresses_need_no_code_of_a_protocol():
    """A server listens for all protocols, and imports none of them for that."""
    modules = imported(
        "from mockllm.wire.protocols import PROTOCOLS\n"
        "from mockllm.serve.server.routing import Routes\n"
        "assert Routes(PROTOCOLS).owner(('x-goog-api-key',)) == 'gemini'"
    )
    assert not [name for name in modules if name.endswith((".protocol", ".encoder", ".decoder"))]


def test_a_protocol_is_imported_alone():
    """Who plays one has none of the others."""
    modules = imported("from mockllm.wire.protocols import PROTOCOLS; PROTOCOLS['gemini']")
    assert "mockllm.wire.protocols.gemini.encoder" in modules
    assert [name for name in modules if name.endswith(".encoder")] == [
        "mockllm.wire.protocols.gemini.encoder"
    ]


@pytest.mark.parametrize(
    ("name", "group"), [("usage-no-choices", "chat"), ("err-in-stream", "stream_errors")]
)
def test_a_quirk_is_imported_with_its_group(name, group):
    """Its group is known by the first word of its name."""
    modules = imported(f"from mockllm.play.quirks import find; find({name!r})")
    groups = {
        "chat",
        "framing",
        "stream_errors",
        "anthropic",
        "responses",
        "gemini",
        "agui",
        "bedrock",
    }
    assert {f"mockllm.play.quirks.{name}" for name in groups} & modules == {
        f"mockllm.play.quirks.{group}"
    }
