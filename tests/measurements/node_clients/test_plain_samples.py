"""Every client under Node reads every sample without quirks correctly.

So a difference under a quirk is one of the client.
"""

from __future__ import annotations

import pytest

from measurements.entries import ROOT, Entry, entries
from mockllm.checking import Policy
from mockllm.checking.cases.build import case
from mockllm.conformance.clients.http_clients import http_runner
from mockllm.play.quirks.samples import CALL_AT_LIMIT, SAMPLES
from tests.cases import for_all

pytestmark = pytest.mark.slow

NODE_CLIENTS = [entry for entry in entries() if entry.language == "javascript"]

WHOLE = [sample for sample in SAMPLES.values() if sample is not CALL_AT_LIMIT]
"""The samples whose arguments parse: clients treat others in different ways."""

REASONING = frozenset({"sample-reasoning", "sample-reasoning-and-call"})
SUMMARY = frozenset({"sample-summary"})

KNOWN_DIFFERENCES = {
    "AI SDK @ai-sdk/openai responses()": (REASONING, "Of reasoning it reports only summaries."),
    "LangChain.js ChatOpenAI({useResponsesApi: true})": (
        REASONING,
        "Of reasoning it reports only summaries.",
    ),
    "LangChain.js ChatAnthropic": (
        frozenset(sample.name for sample in WHOLE),
        "It adds the output tokens of `message_start` and `message_delta`.",
    ),
    "LangChain.js ChatGoogleGenerativeAI": (
        REASONING | SUMMARY,
        "Output tokens are without those of thoughts; signatures of text are lost.",
    ),
    "@openai/agents OpenAIChatCompletionsModel": (
        REASONING | SUMMARY,
        "It reads `reasoning`, as OpenRouter sends it, and not `reasoning_content`.",
    ),
    "AI SDK @ai-sdk/cohere": (
        frozenset({"sample-text-and-call", "sample-text-and-two-calls", "sample-interleaved"}),
        "It ignores the tool plan, and joins the arguments of calls that interleave.",
    ),
}
"""Known mistakes of clients: the names of the samples, and the reason."""


def test_all_are_clients() -> None:
    """The list of known differences names clients that exist."""
    assert KNOWN_DIFFERENCES.keys() <= {entry.name for entry in NODE_CLIENTS}


@pytest.mark.heavy
@for_all("entry", NODE_CLIENTS, ids=lambda entry: entry.slug)
def test_plain_samples(entry: Entry) -> None:
    """The outcome of a plain sample is the expected one, except for known differences."""
    if entry.missing:
        pytest.skip(entry.missing)
    with http_runner(entry.argv, entry.api, cwd=ROOT) as runner:
        cases = [case(sample, entry.api) for sample in WHOLE]
        report = runner.examine(cases, Policy(malformed="keep"))
    wrong = {
        result.case.scenario.name
        for result in report.results
        if result.judgement.verdict not in ("right", "tolerated")
    }
    known, _ = KNOWN_DIFFERENCES.get(entry.name, (frozenset(), ""))
    assert wrong == known, [(r.case.name, r.judgement) for r in report.results]
