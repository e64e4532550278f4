"""The types of a service's own SDK say whether a field is known to it."""

from __future__ import annotations

import pytest

from mockllm.conformance.drift.shapes import JsonPlace
from mockllm.conformance.drift.witness import witness
from mockllm.wire.protocols import PROTOCOLS


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("usageMetadata.promptTokenCount", True),
        ("candidates[].content.parts[].text", True),
        ("candidates[].content.parts[].lane", False),
        ("usage_metadatas", False),
    ],
)
def test_fields_have_their_names_on_the_wire(path: str, known: bool) -> None:
    """Types of Python name a field otherwise than the service, and say so."""
    pytest.importorskip("google.genai")
    said = witness(PROTOCOLS["gemini"], JsonPlace("", path), streamed=True)
    assert said.startswith("google-genai ")
    assert said.endswith(" knows it" if known else " does not know it")


def test_an_api_without_types_has_no_witness() -> None:
    """Nothing is said of its fields."""
    assert PROTOCOLS["bedrock"].sdk is None
    assert witness(PROTOCOLS["bedrock"], JsonPlace("", "stopReason"), streamed=False) == ""
