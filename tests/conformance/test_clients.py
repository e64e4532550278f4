"""Every client understands every sample as it is: what it makes of quirks is its own doing."""

from __future__ import annotations

import pytest

from mockllm.checking.cases.compile import case
from mockllm.checking.judging.compare import differences
from mockllm.checking.policy import Policy
from mockllm.quirks.samples import SAMPLES
from tests.conformance.clients import PYTHON_CLIENTS, Client, NotInstalledError
from tests.conformance.playing import ask

pytestmark = pytest.mark.slow

KNOWN = {
    ("langchain ChatOpenAI(use_responses_api=True)", "sample-interleaved"): (
        "What comes for a call after another item came in between is a new call."
    ),
    ("langchain ChatOpenAI(use_responses_api=True)", "sample-reasoning"): (
        "Of reasoning it tells summaries alone."
    ),
    ("litellm stream_chunk_builder() of anthropic/", "sample-interleaved"): (
        "The fragments of all calls are added to the one that was opened last."
    ),
}
"""What clients make wrong of samples that are as they should be, and how."""


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=list(SAMPLES))
@pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_plain_samples(client: Client, sample) -> None:
    """Without quirks, a client comes to what the scenario says, as far as it can
    tell it, but for what is known."""
    try:
        client.version()
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    played = case(sample, client.api)
    found = differences(played, ask(client, played), Policy(ignore=client.unseen))
    if (client.name, sample.name) in KNOWN:
        assert found, "the client gets it right now: take it off the list"
    else:
        assert found == []
