"""The bench of `mockllm check-gateway`: how many planted mistakes a default run finds under a rule
that is apt, and that it finds nothing between any two APIs where all is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockllm.conformance.gateways.cases import GatewayCase, Pair, gateway_cases
from mockllm.conformance.gateways.check import Gateway, check_gateway
from mockllm.conformance.gateways.gateway_run import gateway_upstream
from mockllm.conformance.results import CaseResult, Client, Results
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.conformance.gateways import between
from tests.conformance.gateways.planted import MUTANTS, gateway
from tests.conformance.gateways.serving import Gateways, running

DEADLINE = 4.0
LEAST = 0.9
"""The share of the mistakes that are found."""

APIS = sorted(set(PROTOCOLS) - {"agui"})
PAIRS = [f"{down}-{up}" for down in APIS for up in APIS]
RIGHT = {
    "editing": ["chat-chat", "responses-responses", "anthropic-anthropic", "gemini-gemini"],
    "responses_on_chat": ["responses-chat"],
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ServerThread]:
    """The service behind the gateways."""
    with gateway_upstream() as upstream:
        yield upstream


@pytest.fixture
def gateways() -> Iterator[Gateways]:
    """Gateways in a thread of this process."""
    with running() as gateways:
        yield gateways


def pair_of(text: str) -> Pair:
    """A pair by its name."""
    down, _, up = text.partition("-")
    return Pair(down, up)


def wrong(
    upstream: ServerThread, pair: Pair, url: str, cases: tuple[GatewayCase, ...]
) -> list[CaseResult]:
    """The lines about a gateway that are not right."""
    gateway = Gateway(pair=pair, rounds=1, url=url, deadline=DEADLINE)
    empty = Results(Client("a gateway"), str(pair), "gateway", mockllm="", date="")
    results = check_gateway(upstream, gateway, cases, empty)
    return [line for line in results.cases if line.verdict != "right"]


@pytest.mark.heavy
def test_planted_mistakes_are_found_by_a_default_run(
    upstream: ServerThread, gateways: Gateways
) -> None:
    """Nine of ten, each under a rule that is apt."""
    missed = []
    for name, bug in MUTANTS.items():
        pair = pair_of(bug.pair)
        url = gateways.start(gateway(bug.gateway, upstream.server.base_urls[pair.up], bug))
        found = {line.group for line in wrong(upstream, pair, url, gateway_cases(pair))}
        gateways.stop()
        if not found & set(bug.found):
            missed.append(f"{name}: {bug.mistake}: {', '.join(sorted(found)) or 'nothing'}")
    assert len(missed) <= (1 - LEAST) * len(MUTANTS), "\n".join(missed)


def test_mistakes_are_many_and_of_many_gateways() -> None:
    """Each is another program, which can be read."""
    sources = {(bug.pair, bug.planted()) for bug in MUTANTS.values()}
    for _, source in sources:
        compile(source, "gateway", "exec")
    assert len(sources) == len(MUTANTS) >= 60
    assert len({bug.pair for bug in MUTANTS.values()}) >= 6


@for_all("pair", PAIRS)
@pytest.mark.heavy
def test_nothing_is_found_between_any_two_apis(
    pair: str, upstream: ServerThread, gateways: Gateways
) -> None:
    """Where a gateway hands on what both can express. It does so once an answer is whole, and knows
    no answer by its id."""
    apis = pair_of(pair)
    url = gateways.start(
        between.application(upstream.server.base_urls[apis.up], apis.down, apis.up)
    )
    cases = tuple(
        case
        for case in gateway_cases(apis)
        if not (case.paced or case.leaves or case.goes_on == "previous")
    )
    found = wrong(upstream, apis, url, cases)
    assert found == [], [(line.case, line.differences) for line in found]


@for_all("name", sorted(RIGHT))
@pytest.mark.slow
def test_nothing_is_found_in_right_gateways(
    name: str, upstream: ServerThread, gateways: Gateways
) -> None:
    """Those in which the mistakes are planted have none themselves."""
    for pair in map(pair_of, RIGHT[name]):
        url = gateways.start(gateway(name, upstream.server.base_urls[pair.up]))
        found = wrong(upstream, pair, url, gateway_cases(pair))
        assert found == [], [(line.case, line.differences) for line in found]


WITH_A_BODY = """
async def _answer(request):
    payload = json.loads(await request.read())
    payload.pop("stream", None)
    payload.pop("stream_options", None)
    async with request.app[HTTP].post(
        request.app[ORIGIN].join(request.rel_url), headers=kept(request.headers), json=payload
    ) as got:
        data = await got.read()
        return web.Response(body=data, status=got.status, content_type="application/json")
"""


def test_a_body_in_place_of_a_stream_is_said_once(
    upstream: ServerThread, gateways: Gateways
) -> None:
    """In the first case that shows it; what clients lose by it is not counted."""
    from types import ModuleType

    from tests.conformance.gateways.planted import source_of

    module = ModuleType("a gateway that answers with bodies")
    exec(compile(source_of("editing") + WITH_A_BODY, "editing.py", "exec"), module.__dict__)
    app = module.application(upstream.server.base_urls["chat"])
    names = ("words", "call", "characters", "words-body")
    pair = Pair("chat", "chat")
    cases = tuple(c for c in gateway_cases(pair) if c.name.partition("/")[2] in names)
    lines = wrong(upstream, pair, gateways.start(app), cases)
    mistakes = [line for line in lines if line.verdict == "wrong" and line.group != "request-kept"]
    assert [line.case for line in mistakes] == ["chat-chat/words:answer-delivered"]
    assert "it is a body, and a stream was requested" in mistakes[0].differences[0]
    reasons = {line.case: line.reason for line in lines if line.verdict == "not judged"}
    assert reasons == {
        f"chat-chat/{name}:answer-delivered": (
            "the gateway answers with a body, as in chat-chat/words"
        )
        for name in ("call", "characters")
    }
