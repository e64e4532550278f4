"""ApplyGuardrail: the answer of a guardrail that lets everything pass.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html

What a guardrail blocks is configured at the service. A scenario with the route says what it does to
a text.
"""

from __future__ import annotations

import re

from mockllm.core.http import Target
from mockllm.wire.protocols.bedrock_converse.errors import CHECKS, TEXT
from mockllm.wire.protocols.records import FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import mapping, string

_UNITS = (
    "contentPolicyUnits",
    "contextualGroundingPolicyUnits",
    "sensitiveInformationPolicyFreeUnits",
    "sensitiveInformationPolicyUnits",
    "topicPolicyUnits",
    "wordPolicyUnits",
)
_BLOCK = CHECKS.fields({}, {"text": CHECKS.fields({"text": TEXT}), "image": CHECKS.mapping})
_BODY = CHECKS.fields(
    {"source": CHECKS.one_of("INPUT", "OUTPUT"), "content": CHECKS.list_of(_BLOCK)},
    {"outputScope": CHECKS.one_of("INTERVENTIONS", "FULL")},
)


def _assessment(body: Fields, target: Target) -> Json:
    _BODY("", body)
    texts = [string(mapping(block.get("text")).get("text")) for block in body["content"]]
    length = sum(map(len, texts))
    images = sum("image" in block for block in body["content"])
    covered: Json = {"textCharacters": {"guarded": length, "total": length}}
    if images:
        covered = {"images": {"guarded": images, "total": images}, **covered}
    return {
        "action": "NONE",
        "actionReason": "No action.",
        "assessments": [{}],
        "guardrailCoverage": covered,
        "outputs": [],
        "usage": dict.fromkeys(_UNITS, 0),
    }


APPLY = FallbackRoute(re.compile(r"/guardrail/(?P<guardrail>.+)/version/[^/]+/apply$"), _assessment)
