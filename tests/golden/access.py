"""All of mockllm's inside that the golden record looks at, as plain values and bytes.

The only file of this folder with imports from mockllm and from the other tests. What it hands on
names no class, attribute or module, so that a renaming changes the imports here and no digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mockllm import ServerOptions, ServerThread, dump, load, loads
from mockllm.protocols.client_requests import ASKING, first_body, user_text
from mockllm.checking import INVARIANTS, Case, Outcome, case, cases, examine, examine_bodies, told
from mockllm.checking.conversations.judge import verify
from tools.corpus import decoded, recordings
from tools.corpus import examine as examine_recording
from mockllm.checking.reference import REFERENCES
from mockllm.checking.reference.lines import ReferenceBytes
from mockllm.checking.judging.running import drive, steps
from mockllm.cli import main as command_line
from mockllm.protocols.environment import client_base_urls, client_environment, unproxied
from mockllm.errors import MockLLMError
from mockllm.importers import Unread
from mockllm.importers import read as read_exchanges
from mockllm.importers.guessing import api_of, made_up, model_of, url_of
from mockllm.protocols.normalisation import masked
from mockllm.matching.select import Pick
from mockllm.replay.player import QUIRK_HEADER, Player
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS
from mockllm.quirks.samples import NOT_OFFERED, SAMPLES
from mockllm.recording.drafting.addresses import addressed
from mockllm.replay.compile import Answer, Replayer, http_answer
from mockllm.replay.resolve import resolve, turn_at
from mockllm.scenario.model import APIS, AutoPart, Scenario
from mockllm.replay.session import Exchange, Session
from mockllm.scenario.shipped import shipped_scenarios
from mockllm.framing.sse import decode
from tests.checking.bad_clients import BAD, TWO, Talk
from tests.checking.mutants import MUTANTS
from tests.checking.talking import body as talking_body
from tests.checking.test_conversations import BAD_TOOLS
from tests.recording.secrets import secret
from tests.scenario.bad_heads import HEADS
from tests.scenario.bad_meanings import MEANING
from tests.scenario.bad_parts import PARTS
from tests.scenario.bad_turns import TURNS
from tests.scenario.bad_yaml import YAML

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
    "meanings": MEANING,
    "parts": PARTS,
    "turns": TURNS,
    "yaml": YAML,
}
LONG = ("long-text", "unicode", "hundred-tools")
_REPLAYER = Replayer()


def as_json(value: Any) -> str:
    """A value as JSON text over several lines."""
    return json.dumps(value, ensure_ascii=False, indent=1)


# Answers


def shown(answer: Answer) -> bytes:
    """Status, headers and every piece of an answer with its time."""
    sent = sha256(answer.instant).hexdigest()[:16]
    flags = [answer.streamed, answer.timed, answer.segmented, answer.ending]
    facts = [*flags, answer.id, answer.size, sent]
    lines = [answer.head(), json.dumps(facts).encode(), b"\n"]
    for piece in answer.pieces:
        lines += [b"+%d (%d)\n" % (piece.at, len(piece.data)), piece.data, b"\n"]
    return b"".join(lines)


def shipped() -> tuple[Scenario, ...]:
    """The scenarios that come with mockllm."""
    return load([shipped_scenarios()])


def samples() -> tuple[Scenario, ...]:
    """The scenarios that quirks are played on."""
    return (*SAMPLES.values(), NOT_OFFERED)


def quirk_forms(api: str) -> Iterator[tuple[str, Scenario]]:
    """Every variant of every quirk of an API by its name, and its own sample."""
    for quirk in QUIRKS.values():
        if api in quirk.apis:
            for variant in quirk.variants:
                name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
                yield name, quirk.sample


def _params(api: str, model: str, *, stream: bool) -> dict[str, str]:
    params = {name: text.format(model=model) for name, text in ASKING[api].params.items()}
    if not stream and ":" in params:
        params[":"] = "generateContent"
    return params


def _body(api: str, model: str, scenario: Scenario, *, stream: bool) -> dict[str, Any]:
    body = first_body(ASKING[api], model, user_text(scenario), scenario.tools)
    if api == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    if "stream" in body:
        body["stream"] = stream
    return body


def played(
    scenario: Scenario, api: str, position: int, *, stream: bool, quirks: tuple[str, ...] = ()
) -> bytes:
    """The answer of a turn, or in words why there is none."""
    protocol = PROTOCOLS[api]
    try:
        body = _body(api, MODEL, scenario, stream=stream)
        request = protocol.parse(body, _params(api, MODEL, stream=stream), False)
        request = replace(request, stream=stream)
        pick = Pick(scenario, position, min(position, len(scenario.turns) - 1))
        return shown(_REPLAYER.answer(pick, request, protocol, quirks))
    except MockLLMError as error:
        return f"no answer: {error}\n".encode()


def every_turn(scenario: Scenario, api: str, *, stream: bool) -> Iterator[tuple[str, bytes]]:
    """Every attempt of every turn of a scenario, and of a repeated turn a second one."""
    protocol = PROTOCOLS[api]
    for position in range(len(scenario.turns) + 1):
        spec = turn_at(scenario, position, api)
        if spec is None:
            continue
        pick = Pick(scenario, position, min(position, len(scenario.turns) - 1))
        for number, failure in enumerate((*spec.attempts, spec.http), 1):
            label = f"turn {position + 1} attempt {number}"
            if failure is not None:
                yield label, shown(http_answer(protocol, failure, pick, number))
            else:
                yield label, played(scenario, api, position, stream=stream)


# Players


class Talking:
    """A session with a player, asked request by request."""

    def __init__(self, scenarios: Any, api: str, *, strict: bool = True) -> None:
        self.player = Player(scenarios, strict=strict)
        self.session = Session("golden")
        self.api = api

    def send(self, body: bytes, model: str = MODEL, **headers: str) -> tuple[Exchange, bytes]:
        """The exchange of a body, and the answer to it."""
        params = _params(self.api, model, stream=True)
        exchange = Exchange("POST", ASKING[self.api].path, {}, body, self.api)
        protocol = PROTOCOLS[self.api]
        answer = self.player.play(protocol, params, headers, self.session, exchange)
        self.session.record(exchange)
        return exchange, shown(answer)


def conversation(scenario: Scenario, api: str) -> Iterator[tuple[str, bytes]]:
    """What the client-request writer writes for a scenario, and what is answered, up to the turn
    that makes no calls; failures are tried again."""
    model = f"mock/{scenario.name}"
    talk, asking = Talking(shipped(), api), ASKING[api]
    body = _body(api, model, scenario, stream=True)
    position = 0
    for number in range(8):
        exchange, answer = talk.send(json.dumps(body).encode(), model)
        yield f"request {number}", as_json(body).encode()
        yield f"answer {number}", answer
        yield f"journal {number}", as_json(exchange.as_json()).encode()
        if exchange.outcome == "error":
            continue
        calls = _calls(scenario, position, api) if exchange.outcome == "played" else ()
        if not calls:
            return
        answer_id = exchange.answer_id or ""
        if number == 0:
            wrong = asking.then(body, answer_id, calls, ["odd"] * len(calls))
            yield "wrong results", talk.send(json.dumps(wrong).encode(), model)[1]
        results = _results(scenario, position + 1, api, calls)
        body = asking.then(body, answer_id, calls, results)
        position += 1


def _calls(scenario: Scenario, position: int, api: str) -> tuple[Any, ...]:
    spec = turn_at(scenario, position, api)
    if spec is None or any(isinstance(part, AutoPart) for part in spec.reply):
        return ()
    calls = resolve(scenario, position, api, PROTOCOLS[api].call_prefix).tool_calls
    return () if any(_unparsable(call) for call in calls) else calls


def _results(scenario: Scenario, position: int, api: str, calls: tuple[Any, ...]) -> list[str]:
    """The results that the next turn wants, or any."""
    spec = turn_at(scenario, position, api)
    wanted = dict(spec.request.results) if spec is not None and spec.request is not None else {}
    texts = {id: one.text.value for id, one in wanted.items() if one.text is not None}
    return [texts.get(call.id, f"result {number}") for number, call in enumerate(calls)]


def _unparsable(call: Any) -> bool:
    try:
        call.parsed()
    except ValueError:
        return True
    return False


def refusals(api: str, text: str, bodies: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """What a player of scenarios answers to bodies, judged strictly and not."""
    for name, body in bodies.items():
        for strict in (True, False):
            exchange, answer = Talking(loads(text), api, strict=strict).send(body)
            yield name, answer + as_json(exchange.as_json()).encode()
    least = json.dumps(first_request(api, "Hello")).encode()
    _, answer = Talking(loads(text), api).send(least, **{QUIRK_HEADER: "no-such-quirk"})
    yield "unknown quirk", answer


def first_request(api: str, text: str) -> dict[str, Any]:
    """The least request that says something."""
    return first_body(ASKING[api], MODEL, text)


def address(api: str) -> tuple[str, dict[str, str]]:
    """The path where a streamed answer is asked for, and the headers."""
    return ASKING[api].path.format(model=MODEL), dict(ASKING[api].headers)


def environments(urls: Mapping[str, str]) -> dict[str, Any]:
    """The variables that lead clients to a server."""
    bases = [[one.variable, one.url, list(one.apis)] for one in client_base_urls(urls)]
    own = {"OPENAI_API_KEY": "mine", "ANTHROPIC_AUTH_TOKEN": "mine", "HTTP_PROXY": "http://p"}
    return {
        "bases": bases,
        "variables": client_environment(urls),
        "beside own": client_environment(urls, own),
        "unproxied": [unproxied({}), unproxied(own), unproxied({**own, "NO_PROXY": "a"})],
    }


def written(scenario: Scenario) -> str:
    """A scenario as YAML."""
    return dump(scenario)


# The checking kit


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """What a client made of a stream."""
    usage = outcome.usage
    return {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "calls": [[call.id, call.name, call.arguments] for call in outcome.tool_calls],
        "finish": outcome.finish,
        "usage": usage and [usage.input, usage.output, usage.reasoning, usage.cached],
        "errors": [[one.kind, one.tool, one.crash, one.message] for one in outcome.errors],
    }


def levels() -> list[tuple[str, str]]:
    """The APIs, each at each level."""
    return [(api, level) for api in APIS for level in ("payloads", "bytes")]


@cache
def mutant_cases(api: str, level: str) -> tuple[Case, ...]:
    """The cases that mutants go through; the three that take long and show nothing are left out."""
    scenarios = [one for one in shipped() if one.name not in LONG]
    return tuple(cases(api, scenarios, variations=2, level=level))


def case_json(one: Case) -> dict[str, Any]:
    """What is known of a case besides its bytes."""
    return {
        "name": one.name,
        "expected": outcome_json(one.expected),
        "finishes": sorted(map(str, one.finishes)),
        "right": one.right,
        "invariant": one.invariant,
        "ids": one.ids,
        "plain": one.plain and one.plain.name,
        "prompt": one.prompt,
        "body": one.body,
    }


def kit_cases(api: str, level: str) -> Iterator[tuple[Case, bytes]]:
    """The cases that mutants go through, and the bytes of each."""
    for one in mutant_cases(api, level):
        yield one, shown(one.answer)


def by_reference(api: str, level: str) -> Iterator[tuple[str, Any]]:
    """What the reference accumulator makes of every case, by the name of the case."""
    for one in mutant_cases(api, "payloads"):
        if level == "bytes":
            outcome = drive(ReferenceBytes(api), [(chunk,) for chunk in one.chunks])
        elif one.events is not None:
            outcome = drive(REFERENCES[api](), steps(one, "payloads"))
        else:
            continue
        yield one.name, outcome_json(outcome)


def report_of(mutant: Any) -> tuple[Any, str]:
    """What the kit says of a mutant: as a value, and as text with the files that play it again."""
    found = mutant_cases(mutant.api, mutant.level)
    report = examine(mutant.make, found, mutant.policy, level=mutant.level)
    words = told(report, mutant.make, level=mutant.level, policy=mutant.policy)
    return _report_json(report), words


def _report_json(report: Any) -> dict[str, Any]:
    return {
        "runs": report.runs,
        "skipped": list(report.skipped),
        "broken": {
            name: [[one.case.name, one.again, *one.words] for one in failures]
            for name, failures in report.broken().items()
        },
    }


def wrong_bodies(api: str) -> Any:
    """What the kit says of one who makes nothing of bodies."""
    plain = cases(api, shipped(), variations=0, quirks=False)
    return _report_json(examine_bodies(lambda body: Outcome.of("?"), plain))


def sample_cases(api: str) -> Iterator[dict[str, Any]]:
    """Every sample of the quirks as a case of an API."""
    for sample in samples():
        yield case_json(case(sample, api))


def invariants() -> dict[str, str]:
    """The invariants in words."""
    return dict(INVARIANTS)


# Conversations


def bad_conversations() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is found out about every bad client, by its name and API, judged strictly and not."""
    for bad, (text, _) in BAD.items():
        for api in APIS:
            for strict in (True, False):
                talk = Talk(text, api, strict=strict)
                bad(talk)
                name = f"{bad.__name__}/{api}/{'strict' if strict else 'lenient'}"
                yield name, _verdict(talk)
    for number, (api, fields) in enumerate(BAD_TOOLS):
        for strict in (True, False):
            talk = Talk(TWO, api, strict=strict)
            talk.send({**talking_body(api, "numbers"), **fields})
            yield f"bad tools {number}/{api}/{'strict' if strict else 'lenient'}", _verdict(talk)


def _verdict(talk: Any) -> dict[str, Any]:
    return {
        "depth 4": talk.verify(depth=4).as_json(),
        "usual": talk.verify().as_json(),
        "lines": [str(one) for one in talk.verify(depth=4).violations],
        "journal": [one.as_json() for one in talk.session.journal],
    }


def shipped_conversations(api: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is found out about a client that asks for each shipped scenario and for no more."""
    for scenario in shipped():
        talk = Talking([scenario], api)
        model = f"mock/{scenario.name}"
        talk.send(json.dumps(_body(api, model, scenario, stream=True)).encode(), model)
        talk.send(json.dumps(first_request(api, "nothing of this kind")).encode())
        yield scenario.name, verify(talk.session, talk.player.catalogue.by_name).as_json()


# Recorded traffic


def streams(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is made of every recorded stream, by API and name."""
    for one in recordings(root):
        frames = decode(one.stream)
        turn, model = decoded(PROTOCOLS[one.api], frames)
        found = examine_recording(one, sdk=False)
        guessed = api_of(None, one.stream)
        yield (
            f"{one.api}/{one.name}",
            {
                "masked": masked(one.api, frames),
                "turn": [turn.text, model, turn.finish, _made_calls(turn)],
                "examined": [
                    found.frames,
                    found.raw,
                    found.error,
                    found.reencoded,
                    found.as_frames,
                ],
                "reference": outcome_json(drive(ReferenceBytes(one.api), [(one.stream,)])),
                "guessed": {
                    "alone": guessed,
                    "with request": api_of(dict(one.request), one.stream),
                    "model": model_of(None, one.stream),
                    "asked model": model_of(dict(one.request), one.stream),
                    "url": [url_of(one.api, model, streamed=flag) for flag in (True, False)],
                    "request": made_up(one.api, one.name, model, streamed=True),
                },
            },
        )


def _made_calls(turn: Any) -> list[list[str]]:
    return [[call.name, call.id, call.arguments] for call in turn.tool_calls]


def exchanges(path: Path, source: str) -> list[Any]:
    """What is read in a file, and which API each exchange is found to speak.

    Args:
        source: what the file is called.
    """
    return [_exchange(one, str(path), source) for one in read_exchanges(path)]


def _exchange(one: Any, path: str, source: str) -> list[Any]:
    if isinstance(one, Unread):
        return [value.replace(path, source) for value in (one.source, one.words, one.asked)]
    found = addressed(one)
    return [
        one.source.replace(path, source),
        [one.method, one.url, one.status, len(one.request_body), len(one.body)],
        found.protocol and found.protocol.name,
        dict(found.params),
        found.words,
        api_of(_object(one.request_body), one.plain().body),
        model_of(_object(one.request_body), one.plain().body),
    ]


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
