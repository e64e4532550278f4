"""The role of an answer: the value on the wire and the neutral one are right, others are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mockllm.checking import Policy
from mockllm.checking.cases.build import case
from mockllm.checking.judging.compare import judge
from mockllm.play.quirks.samples import TEXT
from mockllm.scenario.model import Api


@pytest.mark.parametrize(
    ("api", "role", "invariants"),
    [
        ("gemini", "model", []),
        ("gemini", "assistant", []),
        ("gemini", "user", ["role-kept"]),
        ("anthropic", "assistant", []),
        ("anthropic", "model", ["role-kept"]),
        ("agui", "model", ["role-kept"]),
    ],
)
def test_role_of_an_answer(api: Api, role: str, invariants: list[str]) -> None:
    """Gemini sends `model`, and a client may keep that or `assistant`; no other API sends it."""
    one = case(TEXT, api)
    judgement = judge(one, replace(one.expected, role=role), Policy())
    assert [found.invariant for found in judgement.differences] == invariants
