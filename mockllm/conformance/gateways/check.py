"""Judges a gateway: a control run without one, then every case in several rounds."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import aiohttp

from mockllm.checking.resilience.rule_verdicts import Finding
from mockllm.checking.rules import GATEWAYS, Cost, severity
from mockllm.conformance.case_names import Setting, check_command
from mockllm.conformance.clients.client_results import rule_line
from mockllm.conformance.driver import UNWATCHED, Driver, interruption
from mockllm.conformance.gateways.answer_rules import (
    Observed,
    answer_findings,
    delivery_findings,
    is_unasked_body,
)
from mockllm.conformance.gateways.cases import GatewayCase, Pair, gateway_cases
from mockllm.conformance.gateways.prices import Prices
from mockllm.conformance.gateways.program import GatewayCommand
from mockllm.conformance.gateways.reading import HttpReply, read_reply
from mockllm.conformance.gateways.request_rules import request_findings, upstream_refuses
from mockllm.conformance.results import CaseResult, Client, Play, Results, Stream, request_log
from mockllm.core.http import TimedBytes
from mockllm.scenario.dump import dump
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols.records import Json

SIDE_BY_SIDE = 8
"""Cases that are played at the same time."""

MODEL = "mock-model"
"""The model that requests name where nothing else is given."""

DEADLINE = 20.0
"""Seconds until an answer is to be over."""

_SETTLE = 3.0
"""Seconds that the requests upstream may take to end after the client has its answer."""

_LONGEST_BODY = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The gateway that is judged, and the way.

    Args:
        command: starts it; None for one that runs already.
        url: the origin to which clients send requests; "" until it is started.
        upstream_port: where its upstream listens; 0 for a free port.
        base: the path of the base URL that its clients have; None for that of the API.
        model: that requests name.
        headers: of requests, besides those of the API; with placeholders, as in the command.
        tries: how many requests upstream one request of a client may cause, where they fail.
        rounds: how often each case is played; a mistake counts where it is made each time.
        deadline: seconds until an answer is to be over.
        prices: by which the costs are judged that it states; None where they are not.
        unsupported: why cases are not judged, by patterns of their names.
        setting: the words that reproduce a case.
    """

    pair: Pair
    command: GatewayCommand | None = None
    url: str = ""
    upstream_port: int = 0
    base: str | None = None
    model: str = MODEL
    headers: Mapping[str, str] = field(default_factory=dict)
    tries: int = 1
    rounds: int = 2
    deadline: float = DEADLINE
    prices: Prices | None = None
    unsupported: Mapping[str, str] = field(default_factory=dict)
    setting: Setting | None = None

    def target(self, case: GatewayCase) -> str:
        """The URL of a request."""
        down = case.pair.protocols[0]
        path = down.client.path_of(self.model, stream=case.request.stream)
        if self.base is not None:
            path = self.base + path.removeprefix(down.address.base_path)
        return self.url + path


def check_gateway(
    upstream: ServerThread,
    gateway: Gateway,
    cases: Sequence[GatewayCase],
    empty: Results,
    driver: Driver = UNWATCHED,
) -> Results:
    """The results of a gateway.

    Args:
        empty: the results but for the cases.
    """
    judged = [case for case in cases if not _reason(case, gateway)]
    slow_first = sorted(judged, key=lambda case: not (case.paced or case.leaves))
    rounds: list[dict[str, Observed]] = []
    for number in range(gateway.rounds):
        what = f"cases, round {number + 1}"
        rounds.append(asyncio.run(_play(upstream, gateway, slow_first, driver, what)))
    rows: list[CaseResult] = []
    plays: dict[str, Play] = {}
    bodied = next((case.name for case in judged if _has_body(case.name, rounds)), "")
    for case in cases:
        times = [played for played in rounds if case.name in played]
        if case not in judged:
            rows.append(_unsupported_row(case, _reason(case, gateway)))
        elif len(times) == gateway.rounds:
            lines = case_lines(case, times, gateway, bodied)
            rows += lines
            wrong = any(line.failed for line in lines)
            plays[case.name] = _play_of(times[-1][case.name], wrong=wrong)
    stopped = interruption(len(plays), len(judged))
    return replace(empty, cases=tuple(rows), plays=plays, stopped=stopped)


def _has_body(name: str, rounds: Sequence[Mapping[str, Observed]]) -> bool:
    """Whether a body came in place of a stream in every round of a case."""
    return all(name in played and is_unasked_body(played[name]) for played in rounds)


def control_problem(upstream: ServerThread, pair: Pair, cases: Sequence[GatewayCase]) -> str:
    """Why the same cases are not all right without a gateway, so that nothing that is found is
    certain to be its; "" where they are."""
    names = {short_name(case) for case in cases}
    for api in dict.fromkeys((pair.down, pair.up)):
        same = Pair(api, api)
        direct = [case for case in gateway_cases(same, every=True) if short_name(case) in names]
        alone = Gateway(pair=same, rounds=1, url=upstream.url)
        results = check_gateway(upstream, alone, direct, Results(Client(""), api, "", "", ""))
        wrong = next((row for row in results.cases if row.verdict != "right"), None)
        if wrong is not None:
            text = "; ".join(wrong.differences) or wrong.reason
            return f"the control run without a gateway is not all right: {wrong.case}: {text}"
    return ""


def _reason(case: GatewayCase, gateway: Gateway) -> str:
    """Why a case is declared as not supported; "" where it is not."""
    return next(
        (why for pattern, why in gateway.unsupported.items() if _is_named(case, pattern)), ""
    )


def _is_named(case: GatewayCase, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in case_forms(case))


def case_forms(case: GatewayCase) -> tuple[str, str]:
    """The names by which a case can be chosen: with its pair, and without."""
    return case.name, short_name(case)


def short_name(case: GatewayCase) -> str:
    """The name of a case without its pair."""
    return case.name.partition("/")[2]


# Playing


async def _play(
    upstream: ServerThread,
    gateway: Gateway,
    cases: Sequence[GatewayCase],
    driver: Driver,
    what: str,
) -> dict[str, Observed]:
    """The observations of each case, by its name."""
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False
    ) as http:

        def submit(case: GatewayCase) -> Future[Observed]:
            return asyncio.run_coroutine_threadsafe(_observe(upstream, gateway, case, http), loop)

        return await asyncio.to_thread(driver.play, cases, submit, SIDE_BY_SIDE, what)


async def _observe(
    upstream: ServerThread,
    gateway: Gateway,
    case: GatewayCase,
    http: aiohttp.ClientSession,
) -> Observed:
    """Plays one case, with its second request where the first one has its answer."""
    nonce = f"gw-{secrets.token_hex(8)}"
    upstream.play(nonce, case.scenario, (case.fault,) if case.fault else ())
    try:
        seen = await _request(upstream, gateway, case, http, nonce, case.body(gateway.model, nonce))
        reading = seen.reading
        if case.goes_on and reading.ending == "whole":
            body = case.next_body(seen.body, reading.turn, reading.id, nonce)
            second = await _request(upstream, gateway, case, http, nonce, body)
            exchanges = second.exchanges[len(seen.exchanges) :]
            return replace(seen, second=replace(second, exchanges=exchanges))
        return seen
    finally:
        upstream.ask(upstream.server.break_off, nonce)
        upstream.ask(upstream.server.end, nonce)


async def _request(
    upstream: ServerThread,
    gateway: Gateway,
    case: GatewayCase,
    http: aiohttp.ClientSession,
    nonce: str,
    body: Json,
) -> Observed:
    """Sends a request of a case; with all requests of the case upstream."""
    down = case.pair.protocols[0]
    further = down.client.further_headers if case.with_headers else {}
    headers = {
        "content-type": "application/json",
        **down.client.headers,
        **further,
        **gateway.headers,
    }
    reply = await request_answer(
        http,
        gateway.target(case),
        headers,
        json.dumps(body).encode(),
        deadline=gateway.deadline,
        leaves=case.leaves,
    )
    exchanges = await asyncio.to_thread(upstream.settled_exchanges, nonce, _SETTLE)
    reading = read_reply(reply, down, streamed=case.request.stream)
    return Observed(case, body, reading, exchanges, gateway.tries, gateway.prices)


_BROKEN = (aiohttp.ClientError, ConnectionError, ValueError)
"""What aiohttp raises where an answer breaks off, or is no HTTP."""


async def request_answer(
    http: aiohttp.ClientSession,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline: float,
    leaves: bool = False,
) -> HttpReply:
    """Sends a request, and reads its answer as it comes.

    Args:
        deadline: seconds until the answer is to be over.
        leaves: whether the client closes the connection after the first bytes of the body.
    """
    reply = HttpReply(began=time.perf_counter())
    try:
        async with (
            asyncio.timeout(deadline),
            http.post(url, data=body, headers=headers) as response,
        ):
            await _receive(reply, response, leaves=leaves)
    except TimeoutError:
        reply.transfer, reply.problem = "late", f"no end within {deadline:g} s"
    except _BROKEN as error:
        reply.transfer, reply.problem = "broken", f"{type(error).__name__}: {error}"
    return reply


async def _receive(reply: HttpReply, response: aiohttp.ClientResponse, *, leaves: bool) -> None:
    """Notes what comes; what came stays where it raises."""
    reply.status = response.status
    reply.headers = tuple((name.lower(), value) for name, value in response.headers.items())
    async for data in response.content.iter_any():
        at = round((time.perf_counter() - reply.began) * 1_000_000)
        reply.chunks.append(TimedBytes(at, data))
        if leaves:
            reply.left, reply.transfer = time.perf_counter(), "left"
            response.close()
            return


# Judging


def _findings(seen: Observed, played: Mapping[str, Observed], bodied: str) -> list[Finding]:
    """All findings of a case.

    Args:
        bodied: the first case in which a stream is answered with a body; "" for none. Only there
            it is judged: what clients lose by it follows from it.
    """
    if not seen.exchanges:
        hidden = seen.reading.ending == "whole"
        cost: Cost | None = "silent failure" if hidden else None
        return [Finding("answer-delivered", "wrong", _no_request_text(seen), cost)]
    found = list(request_findings(seen))
    if upstream_refuses(seen):
        return found
    if bodied and is_unasked_body(seen) and seen.case.name != bodied:
        reason = f"the gateway answers with a body, as in {bodied}"
        return [*found, Finding("answer-delivered", "not judged", reason)]
    found += answer_findings(seen, played.get(seen.case.like))
    if seen.second is not None:
        found += _second_findings(seen.second)
    return found


def _second_findings(seen: Observed) -> Iterator[Finding]:
    """The findings about a request that sends back what came out."""
    if not seen.exchanges:
        yield Finding("answer-delivered", "wrong", _no_request_text(seen))
        return
    yield from request_findings(seen)
    if not upstream_refuses(seen):
        yield from delivery_findings(seen)


def _no_request_text(seen: Observed) -> str:
    reading = seen.reading
    got = f": {reading.ending}"
    if reading.error is not None:
        got = f" status {reading.error.status}: {reading.error_message or 'no message'}"
    return f"no request reaches the upstream, and the client gets{got}"


def _unsupported_row(case: GatewayCase, reason: str) -> CaseResult:
    rule = "answer-delivered"
    return rule_line(f"{case.name}:{rule}", rule, "not applicable", (), reason=reason)


def case_lines(
    case: GatewayCase,
    rounds: Sequence[Mapping[str, Observed]],
    gateway: Gateway,
    bodied: str = "",
) -> list[CaseResult]:
    """The lines of a results file for a case, one for each rule. A mistake counts where it is made
    in every round.

    Args:
        bodied: as in `_findings`.
    """
    times = [_findings(played[case.name], played, bodied) for played in rounds]
    seen = rounds[-1][case.name]
    rules = {finding.rule for found in times for finding in found}
    return [_row(rule, times, seen, gateway) for rule in GATEWAYS if rule in rules]


def _row(
    rule: str,
    times: Sequence[Sequence[Finding]],
    seen: Observed,
    gateway: Gateway,
) -> CaseResult:
    """The line for a rule, from what was found in each round."""
    name, setting = f"{seen.case.name}:{rule}", gateway.setting
    times = [[finding for finding in found if finding.rule == rule] for found in times]
    wrong = [[finding for finding in found if finding.verdict == "wrong"] for found in times]
    if all(wrong):
        return rule_line(
            name,
            rule,
            "wrong",
            tuple(finding.text for finding in wrong[-1]),
            min((finding.costs for finding in wrong[-1]), key=severity),
            reaction="either",
            reproduce=() if setting is None else (check_command(setting, seen.case.name),),
            stream=_stream(seen),
        )
    once = next((found[0].text for found in wrong if found), "")
    last = [found for found in times if found][-1][-1]
    if once:
        last = replace(last, verdict="right", text="")
    return rule_line(
        name, rule, last.verdict, (), reaction="either", reason=last.text, unconfirmed=once
    )


def _stream(seen: Observed) -> Stream:
    """The stream that the client got."""
    reply = seen.reading.reply
    return Stream(
        tuple(chunk.data for chunk in reply.chunks),
        tuple(chunk.at for chunk in reply.chunks),
        reply.headers,
        "complete" if reply.transfer == "whole" else "closed",
        reply.status,
    )


def _play_of(seen: Observed, *, wrong: bool) -> Play:
    """The played case, in full where the gateway made a mistake."""
    case = seen.case
    if not wrong:
        return Play(case.title)
    sent = [entry.body.decode("utf-8", "replace")[:_LONGEST_BODY] for entry in seen.exchanges]
    return Play(
        title=case.title,
        scenario=dump(case.scenario),
        faults=(case.fault,) if case.fault else (),
        log=request_log(seen.exchanges),
        answer={"request": seen.body, "upstream": sent, "ending": seen.reading.ending},
    )
