"""`mockllm check-gateway` finds planted bugs, and nothing in gateways without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockllm.conformance.gateways.cases import Pair, gateway_cases
from mockllm.conformance.gateways.check import Gateway, check_gateway
from mockllm.conformance.gateways.gateway_run import gateway_upstream
from mockllm.conformance.results import CaseResult, Client, Results
from mockllm.serve.server.thread import ServerThread
from tests.apis import OVER_HTTP
from tests.cases import for_all
from tests.conformance.gateways.planted import BUGS, Bug, gateway
from tests.conformance.gateways.serving import Gateways, running

DEADLINE = 4.0
"""Seconds after which a gateway lets a client wait for ever. The slowest case takes 1.3 s."""

PASSED = (
    *("chat", "responses", "anthropic", "gemini", "interactions", "bedrock", "ollama", "cohere"),
    "completions",
)


@pytest.fixture(scope="module")
def upstream() -> Iterator[ServerThread]:
    """The service behind the gateways."""
    with gateway_upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def gateways() -> Iterator[Gateways]:
    """Gateways in a thread of this process."""
    with running() as gateways:
        yield gateways


def judged(
    gateways: Gateways, upstream: ServerThread, name: str, pair: Pair, bug: Bug | None = None
) -> list[CaseResult]:
    """The lines about a gateway that are not right."""
    url = gateways.start(gateway(name, upstream.server.base_urls[pair.up], bug))
    judged = Gateway(pair=pair, rounds=1, url=url, deadline=DEADLINE)
    wanted = {f"{pair}/{case}" for case in bug.cases} if bug else set()
    every = gateway_cases(pair, every=bug is None)
    cases = [case for case in every if bug is None or case.name in wanted]
    assert wanted <= {case.name for case in cases}
    empty = Results(Client(name), str(pair), "gateway", mockllm="", date="")
    results = check_gateway(upstream, judged, cases, empty)
    assert not results.stopped
    return [line for line in results.cases if line.verdict != "right"]


@for_all("name", sorted(BUGS))
@pytest.mark.slow
def test_bugs_are_found(name: str, gateways: Gateways, upstream: ServerThread) -> None:
    """Each bug is found under the rules that `bugs.yaml` names, and under no other."""
    bug = BUGS[name]
    down, up = bug.pair.split("-")
    wrong = judged(gateways, upstream, bug.gateway, Pair(down, up), bug)
    assert {line.group for line in wrong} == set(bug.found), [line.differences for line in wrong]


@for_all("api", PASSED)
@pytest.mark.slow
def test_nothing_is_found_where_all_is_handed_on(
    api: str, gateways: Gateways, upstream: ServerThread
) -> None:
    """A gateway that passes everything on has no mistake over any API."""
    assert judged(gateways, upstream, "passing", Pair(api, api)) == []


TRANSLATIONS = {
    "translating": Pair("anthropic", "chat"),
    "translating_back": Pair("chat", "anthropic"),
}


@for_all("name", sorted(TRANSLATIONS))
@pytest.mark.slow
def test_nothing_is_found_in_a_correct_translation(
    name: str, gateways: Gateways, upstream: ServerThread
) -> None:
    """A gateway that loses only what one of both APIs cannot express has no mistake."""
    assert judged(gateways, upstream, name, TRANSLATIONS[name]) == []


def test_every_api_is_passed_on() -> None:
    """The APIs of the test are those with clients of their own."""
    assert {*PASSED, "agui"} == set(OVER_HTTP)


def test_bugs_change_their_gateway() -> None:
    """Each bug is another program, and there are enough of them."""
    sources = {bug.planted() for bug in BUGS.values()}
    for source in sources:
        compile(source, "gateway", "exec")
    assert len(sources) == len(BUGS) >= 40
