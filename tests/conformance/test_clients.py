"""Every Python client reads every sample without quirks correctly.

So a difference under a quirk is one of the client.
"""

from __future__ import annotations

import pytest

from mockllm.checking.cases.compile import case
from mockllm.checking.judging.compare import differences
from mockllm.checking.policy import Policy
from mockllm.quirks.samples import CALL_AT_LIMIT, SAMPLES
from tests.conformance.clients import PYTHON_CLIENTS, Client, NotInstalledError
from tests.conformance.playing import play

pytestmark = pytest.mark.slow

KNOWN_DIFFERENCES = {
    ("langchain ChatOpenAI(use_responses_api=True)", "sample-interleaved"): (
        "Arguments that follow another item begin a new call."
    ),
    ("langchain ChatOpenAI(use_responses_api=True)", "sample-reasoning"): (
        "Of reasoning it reports only summaries."
    ),
    ("langchain ChatOpenAI(use_responses_api=True)", "sample-reasoning-and-call"): (
        "Of reasoning it reports only summaries."
    ),
    ("litellm stream_chunk_builder() of anthropic/", "sample-interleaved"): (
        "All fragments are appended to the call that began last."
    ),
}
"""Known mistakes of clients with plain samples, by client and sample."""

WHOLE = {name: sample for name, sample in SAMPLES.items() if sample is not CALL_AT_LIMIT}
"""The samples whose arguments parse: clients treat others in different ways."""


@pytest.mark.parametrize("sample", WHOLE.values(), ids=list(WHOLE))
@pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.name)
def test_plain_samples(client: Client, sample) -> None:
    """The outcome of a plain sample is the expected one, except for known differences."""
    try:
        client.version()
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    played = case(sample, client.api)
    found = differences(played, play(client, played), Policy(ignore=client.unseen))
    if (client.name, sample.name) in KNOWN_DIFFERENCES:
        assert found, "the client is correct now: remove the entry"
    else:
        assert found == []
