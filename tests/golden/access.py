"""The golden record's access to the internals of mockllm, as plain values and bytes.

The only file of this folder with imports from mockllm and from other tests. Its results name no
class, attribute or module, so that a renaming changes the imports here and no text of the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm import ServerOptions, ServerThread, dump, load, loads
from mockllm.checking import (
    INVARIANTS,
    Case,
    Outcome,
    case,
    cases,
    examine,
    examine_bodies,
    report_text,
)
from mockllm.checking.conversations.judge import verify
from mockllm.checking.judging.running import drive, feed_arguments
from mockllm.cli import main as command_line
from mockllm.core.errors import MockLLMError
from mockllm.core.http import Target
from mockllm.play.matching.conversation import Selection
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.samples import NOT_OFFERED, SAMPLES
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target, first_body, user_text
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer, http_error_answer
from mockllm.play.replay.compilation.resolve import resolve, turn_at
from mockllm.play.replay.loading import shipped_scenarios
from mockllm.play.replay.player import Player
from mockllm.play.replay.request_headers import QUIRK_HEADER
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import detect_api
from mockllm.record.importers.reading import Unread, usual_url
from mockllm.record.importers.sse_dump import _minimal
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import AutoPart
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.environment import (
    client_base_urls,
    client_environment,
    proxy_exemptions,
)
from mockllm.wire.protocols.route_matching import detect_by_body, model_of
from mockllm.wire.protocols.values import json_object
from tests.apis import CALLING
from tests.checking.conversations.bad_clients import BAD, TWO, Conversation
from tests.checking.conversations.request_bodies import body as request_body
from tests.checking.conversations.test_conversations import BAD_TOOLS
from tests.checking.mutants import MUTANTS as ALL_MUTANTS
from tests.checking.mutants.altered import forget_streams
from tests.corpus import read as read_exchanges
from tests.record.redaction.secrets import secret
from tests.scenario.bad_heads import HEADS
from tests.scenario.bad_parts import PARTS
from tests.scenario.bad_semantics import SEMANTICS
from tests.scenario.bad_turns import TURNS
from tests.scenario.bad_yaml import YAML
from tools.comparison import normalized
from tools.corpus import decode_turn, recordings
from tools.corpus import examine as examine_recording

APIS = tuple(PROTOCOLS)
MUTANTS = [one for one in ALL_MUTANTS if one.exact]

__all__ = [
    "APIS",
    "BAD_DOCUMENTS",
    "MUTANTS",
    "ServerOptions",
    "ServerThread",
    "command_line",
    "loads",
    "secret",
]

MODEL = "mock-model"
BAD_DOCUMENTS = {
    "heads": HEADS,
    "meanings": SEMANTICS,
    "parts": PARTS,
    "turns": TURNS,
    "yaml": YAML,
}
LONG = ("long-text", "unicode", "hundred-tools")


@cache
def _replayer() -> Replayer:
    return Replayer()


def as_json(value: Any) -> str:
    """A value as JSON text over several lines."""
    return json.dumps(value, ensure_ascii=False, indent=1)


# Answers


def as_bytes(answer: HttpAnswer) -> bytes:
    """Status, headers, and every chunk of an answer with its time."""
    sent = sha256(answer.encoded).hexdigest()[:16]
    flags = [answer.streamed, answer.timed, answer.segmented, answer.ending]
    facts = [*flags, answer.id, answer.size, sent]
    lines = [answer.head(), json.dumps(facts).encode(), b"\n"]
    for chunk in answer.chunks:
        lines += [b"+%d (%d)\n" % (chunk.at, len(chunk.data)), chunk.data, b"\n"]
    return b"".join(lines)


def shipped() -> tuple[Scenario, ...]:
    """The scenarios that come with mockllm."""
    return load([shipped_scenarios()])


def samples() -> tuple[Scenario, ...]:
    """The scenarios that quirks are played on."""
    return (*SAMPLES.values(), NOT_OFFERED)


def quirk_forms(api: str) -> Iterator[tuple[str, Scenario]]:
    """Every variant of every quirk of an API by its name, and the sample that shows it best."""
    for quirk in QUIRKS.values():
        if quirk.applies_to(api):
            for variant in quirk.variants:
                name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
                yield name, quirk.sample_of(variant)


def _body(api: str, model: str, scenario: Scenario, *, stream: bool) -> dict[str, Any]:
    body = first_body(PROTOCOLS[api], model, user_text(scenario), scenario.tools)
    if api == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    if "stream" in body:
        body["stream"] = stream
    return body


def played(
    scenario: Scenario, api: str, position: int, *, stream: bool, quirks: tuple[str, ...] = ()
) -> bytes:
    """The answer of a turn, or the reason why there is none."""
    protocol = PROTOCOLS[api]
    try:
        body = _body(api, MODEL, scenario, stream=stream)
        request = protocol.parse(body, client_target(protocol, MODEL, stream=stream), False)
        request = replace(request, stream=stream)
        selection = Selection(scenario, position, min(position, len(scenario.turns) - 1))
        return as_bytes(_replayer().answer(selection, request, protocol, quirks))
    except MockLLMError as error:
        return f"no answer: {error}\n".encode()


def every_turn(scenario: Scenario, api: str, *, stream: bool) -> Iterator[tuple[str, bytes]]:
    """Every attempt of every turn of a scenario, and of a repeated turn a second one."""
    protocol = PROTOCOLS[api]
    for position in range(len(scenario.turns) + 1):
        spec = turn_at(scenario, position, api)
        if spec is None:
            continue
        selection = Selection(scenario, position, min(position, len(scenario.turns) - 1))
        for number, failure in enumerate((*spec.attempts, spec), 1):
            label = f"turn {position + 1} attempt {number}"
            if failure.http is not None:
                yield label, as_bytes(http_error_answer(protocol, failure, selection, number))
            else:
                yield label, played(scenario, api, position, stream=stream)


# Players


class PlayerSession:
    """A session with a player."""

    def __init__(self, scenarios: Any, api: str, *, strict: bool = True) -> None:
        self.player = Player(scenarios, strict=strict)
        self.session = Session("golden")
        self.api = api

    def send(self, body: bytes, model: str = MODEL, **headers: str) -> tuple[Exchange, bytes]:
        """The exchange of a body, and the answer to it."""
        protocol = PROTOCOLS[self.api]
        target = client_target(protocol, model)
        answered = self.player.play(ApiCall(protocol, target, headers, body, self.session))
        exchange = Exchange(Received("POST", protocol.client.path, {}, body), answered.played)
        self.session.record(exchange)
        return exchange, as_bytes(answered.answer)


def conversation(scenario: Scenario, api: str) -> Iterator[tuple[str, bytes]]:
    """Requests and answers of a scenario, up to the turn without calls; failures are retried."""
    model = f"mock/{scenario.name}"
    session, client = PlayerSession(shipped(), api), PROTOCOLS[api].client
    body = _body(api, model, scenario, stream=True)
    position = 0
    for number in range(8):
        exchange, answer = session.send(json.dumps(body).encode(), model)
        yield f"request {number}", as_json(body).encode()
        yield f"answer {number}", answer
        yield f"journal {number}", as_json(exchange.as_json()).encode()
        if exchange.outcome == "error":
            continue
        calls = _calls(scenario, position, api) if exchange.outcome == "played" else ()
        if not calls:
            return
        answer_id = exchange.played.answer_id or ""
        if number == 0:
            odd = client.continuation(body, answer_id, calls, ["odd"] * len(calls))
            yield "wrong results", session.send(json.dumps(odd).encode(), model)[1]
        results = _results(scenario, position + 1, api, calls)
        body = client.continuation(body, answer_id, calls, results)
        position += 1


def _calls(scenario: Scenario, position: int, api: str) -> tuple[Any, ...]:
    spec = turn_at(scenario, position, api)
    if spec is None or any(isinstance(part, AutoPart) for part in spec.reply):
        return ()
    calls = resolve(scenario, position, api).tool_calls
    return () if any(_unparsable(call) for call in calls) else calls


def _results(scenario: Scenario, position: int, api: str, calls: tuple[Any, ...]) -> list[str]:
    """The results that the next turn requires, or any."""
    spec = turn_at(scenario, position, api)
    wanted = dict(spec.request.results) if spec is not None and spec.request is not None else {}
    texts = {id: one.text.value for id, one in wanted.items() if one.text is not None}
    return [texts.get(call.id, f"result {number}") for number, call in enumerate(calls)]


def _unparsable(call: Any) -> bool:
    try:
        call.parse_arguments()
    except ValueError:
        return True
    return False


def refusals(api: str, text: str, bodies: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """A player's answers to bodies, with strict request validation and without."""
    for name, body in bodies.items():
        for strict in (True, False):
            exchange, answer = PlayerSession(loads(text), api, strict=strict).send(body)
            yield name, answer + as_json(exchange.as_json()).encode()
    least = json.dumps(first_request(api, "Hello")).encode()
    _, answer = PlayerSession(loads(text), api).send(least, **{QUIRK_HEADER: "no-such-quirk"})
    yield "unknown quirk", answer


def first_request(api: str, text: str) -> dict[str, Any]:
    """The smallest request with a user message."""
    return first_body(PROTOCOLS[api], MODEL, text)


def address(api: str) -> tuple[str, dict[str, str]]:
    """The path and headers of a request for a streamed answer."""
    client = PROTOCOLS[api].client
    return client.path_of(MODEL), dict(client.headers)


def environments(urls: Mapping[str, str]) -> dict[str, Any]:
    """The environment variables that set clients' base URLs and keys."""
    bases = [[url.variable, url.url, list(url.apis)] for url in client_base_urls(urls)]
    own = {"OPENAI_API_KEY": "mine", "ANTHROPIC_AUTH_TOKEN": "mine", "HTTP_PROXY": "http://p"}
    return {
        "bases": bases,
        "variables": client_environment(urls),
        "beside own": client_environment(urls, own),
        "unproxied": [
            proxy_exemptions({}),
            proxy_exemptions(own),
            proxy_exemptions({**own, "NO_PROXY": "a"}),
        ],
    }


def written(scenario: Scenario) -> str:
    """A scenario as YAML."""
    return dump(scenario)


# The checking kit


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    usage = outcome.usage
    return {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "calls": [[call.id, call.name, call.arguments] for call in outcome.tool_calls],
        "finish": outcome.finish,
        "usage": usage and [usage.input, usage.output, usage.reasoning, usage.cached],
        "errors": [
            [error.kind, error.tool, error.crash, error.message] for error in outcome.errors
        ],
    }


def levels() -> list[tuple[str, str]]:
    """The APIs, each at each level."""
    return [(api, level) for api in APIS for level in ("payloads", "bytes")]


@cache
def mutant_cases(api: str, level: str) -> tuple[Case, ...]:
    """The cases that are run with mutants, without three long scenarios."""
    scenarios = [one for one in shipped() if one.name not in LONG]
    return tuple(cases(api, scenarios, variations=1, level=level))


def case_json(one: Case) -> dict[str, Any]:
    """The fields of a case besides its bytes."""
    return {
        "name": one.name,
        "expected": outcome_json(one.expected),
        "finishes": sorted(map(str, one.finish_values)),
        "right": one.reaction,
        "invariant": one.invariant,
        "ids": one.ids,
        "plain": one.plain and one.plain.name,
        "prompt": one.prompt,
        "body": one.body,
    }


def kit_cases(api: str, level: str) -> Iterator[tuple[Case, bytes]]:
    """The cases that are run with mutants, and the bytes of each."""
    for case_ in mutant_cases(api, level):
        yield case_, as_bytes(case_.answer)


def by_reference(api: str, level: str) -> Iterator[tuple[str, Any]]:
    """The reference accumulator's outcome of every case, by the name of the case."""
    for case_ in mutant_cases(api, "payloads"):
        if level == "bytes":
            outcome = drive(ReferenceBytes(api), [(chunk,) for chunk in case_.chunks])
        elif case_.events is not None:
            outcome = drive(REFERENCES[api](), feed_arguments(case_, "payloads"))
        else:
            continue
        yield case_.name, outcome_json(outcome)


def report_of(mutant: Any) -> tuple[Any, str]:
    """The kit's report on a mutant: as a value, and as text with the files that reproduce it."""
    forget_streams()  # other tests may have run the mutants that share their calls
    found = mutant_cases(mutant.api, mutant.level)
    report = examine(mutant.make, found, mutant.policy, level=mutant.level)
    text = report_text(report, mutant.make, level=mutant.level, policy=mutant.policy)
    return _report_json(report), text


def _report_json(report: Any) -> dict[str, Any]:
    return {
        "runs": report.runs,
        "skipped": list(report.skipped),
        "broken": {
            name: [
                [failure.case.name, failure.secondary, *failure.descriptions]
                for failure in failures
            ]
            for name, failures in report.broken().items()
        },
    }


def wrong_bodies(api: str) -> Any:
    """The kit's report on a reader whose outcome of every body is the same."""
    plain = cases(api, shipped(), variations=0, quirks=False)
    return _report_json(examine_bodies(lambda body: Outcome.of("?"), plain))


def sample_cases(api: str) -> Iterator[dict[str, Any]]:
    """Every sample of the quirks as a case of an API."""
    for sample in samples():
        yield case_json(case(sample, api))


def invariants() -> dict[str, str]:
    """The invariants with their descriptions."""
    return dict(INVARIANTS)


# Conversations


def bad_conversations() -> Iterator[tuple[str, dict[str, Any]]]:
    """The verdict on every bad client, by name, API, and with strict validation or without."""
    for bad, (text, _) in BAD.items():
        for api in CALLING:
            for strict in (True, False):
                session = Conversation(text, api, strict=strict)
                bad(session)
                name = f"{bad.__name__}/{api}/{'strict' if strict else 'lenient'}"
                yield name, _verdict(session)
    for number, (api, fields) in enumerate(BAD_TOOLS):
        for strict in (True, False):
            session = Conversation(TWO, api, strict=strict)
            session.send({**request_body(api, "numbers"), **fields})
            yield f"bad tools {number}/{api}/{'strict' if strict else 'lenient'}", _verdict(session)


def _verdict(session: Any) -> dict[str, Any]:
    return {
        "depth 4": session.verify(depth=4).as_json(),
        "usual": session.verify().as_json(),
        "lines": [str(violation) for violation in session.verify(depth=4).violations],
        "journal": [entry.as_json() for entry in session.session.journal],
    }


def shipped_conversations(api: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The verdict on a client that sends the first request of a shipped scenario only."""
    for scenario in shipped():
        session = PlayerSession([scenario], api)
        model = f"mock/{scenario.name}"
        session.send(json.dumps(_body(api, model, scenario, stream=True)).encode(), model)
        session.send(json.dumps(first_request(api, "nothing of this kind")).encode())
        yield scenario.name, verify(session.session, session.player.served.by_name).as_json()


# Recorded traffic


def streams(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every recorded stream in all its readings, by API and name."""
    for recording in recordings(root):
        frames = decode(recording.stream)
        protocol = PROTOCOLS[recording.api]
        turn, model = decode_turn(protocol, frames)
        found = examine_recording(recording, sdk=False)
        yield (
            f"{recording.api}/{recording.name}",
            {
                "masked": normalized(protocol, frames),
                "turn": [turn.text, model, turn.finish, _tool_calls(turn)],
                "examined": [
                    found.frames,
                    found.raw,
                    found.error,
                    found.reencoded,
                    found.as_frames,
                ],
                "reference": outcome_json(
                    drive(ReferenceBytes(recording.api), [(recording.stream,)])
                ),
                "guessed": {
                    "alone": _api_of(None, recording.stream),
                    "with request": _api_of(dict(recording.request), recording.stream),
                    "model": model_of(None, recording.stream),
                    "asked model": model_of(dict(recording.request), recording.stream),
                    "url": [usual_url(protocol, model, streamed=flag) for flag in (True, False)],
                    "request": _minimal(protocol, model, recording.name, stream=True),
                },
            },
        )


def _api_of(request: dict[str, Any] | None, body: bytes) -> str | None:
    protocol = detect_by_body(request, body)
    return protocol and protocol.name


def _tool_calls(turn: Any) -> list[list[str]]:
    return [[call.name, call.id, call.arguments] for call in turn.tool_calls]


def exchanges(path: Path, source: str) -> list[Any]:
    """The exchanges of a file, each with its detected API.

    Args:
        source: the name that replaces the path of the file.
    """
    return [_exchange(exchange, str(path), source) for exchange in read_exchanges(path)]


def _exchange(one: Any, path: str, source: str) -> list[Any]:
    if isinstance(one, Unread):
        return [value.replace(path, source) for value in (one.source, one.reason, one.request)]
    found = detect_api(one)
    return [
        one.source.replace(path, source),
        [one.method, one.url, one.status, len(one.request_body), len(one.body)],
        found.protocol and found.protocol.name,
        _params(found.target),
        found.reason,
        _api_of(json_object(one.request_body), one.plain().body),
        model_of(json_object(one.request_body), one.plain().body),
    ]


def _params(target: Target) -> dict[str, str]:
    """A target as one mapping: the method under ":", parameters of the query behind "?"."""
    method = {":": target.method} if target.method else {}
    query = {f"?{name}": value for name, value in target.query.items()}
    return {**target.segments, **method, **query}
