"""The cases of a gateway: what its client sends, and what its upstream answers. Pure.

It reads `cases.yaml`, where they stand, and the answers that they share, in `answers.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from mockllm.checking.cases.build import changes, first_answer
from mockllm.checking.cases.compile import forms
from mockllm.checking.cases.scenarios import single, vary, with_quirks
from mockllm.checking.material import answers_of, kit_scenarios
from mockllm.checking.rules import table
from mockllm.conformance.case_names import parse_variation
from mockllm.core.errors import RequestError
from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.core.turn import Reasoning, Text, ToolCall, Turn
from mockllm.play.quirks import QUIRKS
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.durations import read_duration
from mockllm.scenario.model import Api, Http, Scenario, Timing
from mockllm.scenario.part_model import ErrorSpec, TextPart
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.records import Json

PROMPT = "What is the weather in Paris?"

NEXT = "And tomorrow?"
"""The user's text after an answer without calls."""

LIMIT = 1000
"""The tokens that every request allows, as some services need a limit; one case has none."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The API that a gateway's clients speak, and the one of its upstream."""

    down: Api
    up: Api

    def __str__(self) -> str:
        return f"{self.down}-{self.up}"

    @property
    def protocols(self) -> tuple[WireProtocol, WireProtocol]:
        """Both protocols."""
        return PROTOCOLS[self.down], PROTOCOLS[self.up]


@dataclass(frozen=True, slots=True)
class GatewayCase:
    """One request of a client, and what the upstream answers.

    Args:
        name: unique in the cases of a pair, such as `anthropic-chat/cut-call-close`.
        scenario: of one turn, which answers every request of the case.
        request: in its neutral form; `request.stream` is whether a stream is requested.
        fault: what breaks on the way of the answer, as it is written for `--fault`.
        like: the name of the case whose answer this one has; "" for none.
        leaves: whether the client leaves after the first bytes of the answer.
        about_request: whether the request is what the case is about.
        features: what the request says beside its neutral form, by the names of features.
        with_headers: whether the client sends headers that it may leave out.
        may_lose_end: whether the end of the answer may be passed over, if that is reported.
        goes_on: whether the client sends back what came out, in a second request: `history` with
            all messages, `previous` with the id of the answer; "" if it does not.
    """

    name: str
    title: str
    pair: Pair
    scenario: Scenario
    request: Request
    parameters: Parameters
    fault: str = ""
    like: str = ""
    leaves: bool = False
    about_request: bool = False
    features: Mapping[str, Any] = field(default_factory=dict)
    with_headers: bool = False
    may_lose_end: bool = False
    goes_on: Literal["", "history", "previous"] = ""

    @property
    def error(self) -> Http | None:
        """The HTTP error that the upstream answers with; None where it answers."""
        return self.scenario.turns[0].http

    @property
    def retry_after(self) -> float | None:
        """The seconds to wait that the upstream names, where both APIs have a header for them."""
        if self.error is None or self.error.retry_after is None:
            return None
        seconds = self.error.retry_after / 1_000_000
        refusal = RequestError("", status=self.error.status, retry_after=seconds)
        both = [protocol.error_headers("", refusal) for protocol in self.pair.protocols]
        return seconds if all("retry-after" in headers for headers in both) else None

    @property
    def paced(self) -> bool:
        """Whether the upstream takes its time."""
        timing = self.scenario.turns[0].timing
        return timing is not None and timing.ttft is not None

    @property
    def breaks_off(self) -> bool:
        """Whether the answer has no end; other faults change when its bytes come."""
        return self.fault.startswith("cut")

    @property
    def ends_orderly(self) -> bool:
        """Whether an answer that breaks off ends as a whole one does, on its connection."""
        return "end=orderly" in self.fault

    @property
    def answered(self) -> Turn:
        """The answer of the upstream: the part that its API can express."""
        up = self.pair.protocols[1]
        return up.project(resolve(self.scenario, 0, up.name))

    @property
    def expected(self) -> Turn:
        """The answer that a client of the gateway gets: the part that both APIs can express."""
        return self.pair.protocols[0].project(self.answered)

    @property
    def answer(self) -> HttpAnswer:
        """The answer of the upstream to a request for a stream, without what breaks on the way."""
        return first_answer(self.scenario, self.pair.up)[1]

    def body(self, model: str, nonce: str) -> Json:
        """The body that the client sends.

        Args:
            nonce: stands in the user's text, by which the request is found upstream.
        """
        client = self.pair.protocols[0].client
        messages = tuple(
            replace(message, text=f"{message.text} (case {nonce})")
            if message.text == self.prompt and message in self.request.users
            else message
            for message in self.request.messages
        )
        body = self._write(replace(self.request, model=model, messages=messages))
        for name, value in self.features.items():
            body = client.features[name].put(body, value)
        return body

    def next_body(self, body: Json, answer: Turn, id: str, nonce: str) -> Json:
        """The body of the second request, which sends back what came out of the first one.

        Args:
            body: of the first request.
            answer: as a client of the gateway has read it, and its id.
            nonce: stands in the user's text, or in the results.
        """
        down = self.pair.protocols[0]
        first = down.parse(body, client_target(down, "model"), False)
        calls = tuple(CallEcho(call.id, call.name, call.arguments) for call in answer.tool_calls)
        results = [
            Message("tool", f"result {number} (case {nonce})", call_id=call.id, name=call.name)
            for number, call in enumerate(calls, 1)
        ]
        asked = Message("user", f"{NEXT} (case {nonce})")
        said = [Message("assistant", answer.text, calls), *(results or [asked])]
        if self.goes_on == "previous":
            return down.client.next_body(body, id, said, answer.tool_calls)
        request = replace(first, model=body.get("model", ""), messages=(*first.messages, *said))
        written = self._write(request)
        signed = [
            (part.text if isinstance(part, Reasoning) else "", part.signature)
            for part in answer.parts
            if isinstance(part, (Text, Reasoning, ToolCall)) and part.signature
        ]
        feature = down.client.features.get("signatures")
        return written if feature is None or not signed else feature.put(written, signed)

    def _write(self, request: Request) -> Json:
        client = self.pair.protocols[0].client
        body = client.write(request, self.parameters)
        return {**body, **client.usage} if self.request.stream else body

    @property
    def prompt(self) -> str:
        """The last user message."""
        return self.request.last_user.text


def gateway_cases(pair: Pair, *, every: bool = False) -> tuple[GatewayCase, ...]:
    """The cases of a pair of APIs.

    Args:
        every: also the kit's scenarios, and the framing of real services.
    """
    listed = [case for entry in table("cases.yaml", __package__) for case in _cases(entry, pair)]
    return (*listed, *(_further(pair) if every else ()))


OUTSIDE = (
    "log probabilities, several choices, images and sound in answers",
    "tools that the service runs, and models, tokens, embeddings, files and batches",
    "keys, quotas, caches, and the choice between several upstreams",
    "more requests at once than a few",
)
"""Subjects of gateways that no case is about."""


def outside(pair: Pair, *, every: bool = False, priced: bool = False) -> tuple[str, ...]:
    """The subjects that no case of a pair is about, so that no report promises them.

    Args:
        priced: whether costs are judged.
    """
    played = {case.name.partition("/")[2] for case in gateway_cases(pair)}
    names = [entry["name"] for entry in table("cases.yaml", __package__)]
    absent = ", ".join(name for name in names if name not in played)
    texts = [*OUTSIDE]
    if absent:
        texts.append(f"what one of the two APIs does not have: {absent}")
    if not priced:
        texts.append("with `prices` only: what answers cost")
    if not every:
        texts.append("with --all only: further answers, and how real services frame their events")
    return tuple(texts)


def _cases(entry: Mapping[str, Any], pair: Pair) -> Iterator[GatewayCase]:
    """The case of an entry of the file, and the same without a stream; none where the upstream's
    API cannot have it."""
    down, up = pair.protocols
    if entry.get("carrier", up.usual.name) != up.usual.name:
        return
    if "quirk" in entry and not (set(entry["quirk"]) & _quirks(up.name)):
        return
    if not _has_features(entry, pair):
        return
    if entry.get("with_headers") and not (down is up and down.client.further_headers):
        return
    if entry.get("goes_on") == "previous" and not (down is up and down.stored):
        return
    scenario = _answers()[entry.get("answer", "words")]
    if (scenario.tools or "tools" in entry.get("request", ())) and not (
        down.client.tool_fields and up.client.tool_fields
    ):
        return
    streamed = _case(entry, pair, _scenario(entry, scenario, pair.up))
    yield streamed
    if entry.get("plain") and (down.client.body_path or down.client.stream_field):
        yield replace(
            streamed,
            name=f"{streamed.name}-body",
            title=f"{streamed.title}, not streamed",
            request=replace(streamed.request, stream=False),
        )


def _has_features(entry: Mapping[str, Any], pair: Pair) -> bool:
    """Whether the API of the client has the features of a case, and, where the case needs it, that
    of the upstream understands their values."""
    down, up = (protocol.client.features for protocol in pair.protocols)
    names = entry.get("features", ())
    if any(name not in down for name in names):
        return False
    return not entry.get("understood") or all(
        name in up and up[name].origin == down[name].origin for name in names
    )


def _answers() -> Mapping[str, Scenario]:
    """The answers of the model, by name."""
    return answers_of(__package__ or "")


def _scenario(entry: Mapping[str, Any], answer: Scenario, up: Api) -> Scenario:
    """The scenario that the upstream plays in a case."""
    turn = answer.turns[0]
    if "times" in entry:
        (text,) = cast("Sequence[TextPart]", turn.reply)
        turn = replace(turn, reply=(replace(text, text=text.text * entry["times"], split=None),))
    if "every" in entry:
        turn = replace(turn, timing=Timing(every=read_duration(entry["every"])))
    if "http" in entry:
        given = entry["http"]
        retry = given.get("retry_after")
        turn = replace(
            turn,
            reply=(),
            usage=None,
            http=Http(
                given["status"],
                retry_after=None if retry is None else read_duration(retry),
                error=ErrorSpec(**given["error"]),
            ),
        )
    scenario = replace(answer, name=entry["name"], apis=(up,), turns=(turn,))
    quirks = tuple(name for name in entry.get("quirk", ()) if name in _quirks(up))
    return with_quirks(vary(single(scenario), parse_variation(entry.get("cut", ""))), quirks)


def _quirks(up: Api) -> frozenset[str]:
    """The names of the quirks that the streams of an API can have."""
    return frozenset(form.name for form in forms(up, QUIRKS.over(up)))


def _case(entry: Mapping[str, Any], pair: Pair, scenario: Scenario) -> GatewayCase:
    given = {"max_tokens": LIMIT, **entry.get("request", {})}
    parameters = {name: given.pop(name) for name in _PARAMETERS if name in given}
    if "stop" in parameters:
        parameters["stop"] = tuple(parameters["stop"])
    like = entry.get("like")
    # Whatever a request has of earlier turns, this one answers.
    turn = replace(scenario.turns[0], repeat=True)
    return GatewayCase(
        name=f"{pair}/{entry['name']}",
        title=entry["title"],
        pair=pair,
        scenario=replace(scenario, turns=(turn,)),
        request=_request(given, scenario, pair.down),
        parameters=Parameters(**parameters),
        fault=entry.get("fault", ""),
        like=f"{pair}/{like}" if like else "",
        leaves=entry.get("leaves", False),
        about_request="request" in entry,
        features=entry.get("features", {}),
        with_headers=entry.get("with_headers", False),
        may_lose_end=entry.get("may_lose_end", False),
        goes_on=entry.get("goes_on", ""),
    )


_PARAMETERS = tuple(parameter.name for parameter in fields(Parameters))


def _request(given: Mapping[str, Any], scenario: Scenario, down: Api) -> Request:
    """The request of a case.

    Args:
        given: `system`, or several ones, how often it is repeated, `prompt`, messages `before` and
            `after` it, `files` with it, `tools` in place of the scenario's, and other fields of
            `Request`.
    """
    rest = dict(given)
    system = rest.pop("system", [])
    times = rest.pop("times", 1)
    systems = [system * times] if isinstance(system, str) else system
    prompt = Message("user", rest.pop("prompt", PROMPT), files=_files(rest.pop("files", ())))
    before, after = (map(_message, rest.pop(name, ())) for name in ("before", "after"))
    first = tuple(Message("system", text) for text in systems)
    tools = rest.pop("tools", None)
    offered = tuple(tool.offered_tool() for tool in scenario.tools)
    return Request(
        down,
        "",
        {},
        stream=True,
        messages=(*first, *before, prompt, *after),
        system="\n".join(systems),
        tools=offered if tools is None else tuple(OfferedTool(**tool) for tool in tools),
        **rest,
    )


def _message(given: Mapping[str, Any]) -> Message:
    calls = tuple(CallEcho(**call) for call in given.get("calls", ()))
    return Message(**{**given, "calls": calls})


def _files(given: Any) -> tuple[SentFile, ...]:
    return tuple(SentFile(**file) for file in given)


# `--all`


def _further(pair: Pair) -> Iterator[GatewayCase]:
    """The kit's scenarios that the upstream's API can play, and how real services frame events."""
    for scenario in kit_scenarios(pair.up):
        for position, turn in enumerate(scenario.turns):
            if turn.for_api(pair.up).http is None and not turn.for_api(pair.up).expect:
                played = single(scenario, position)
                entry = {"name": played.name, "title": scenario.description or played.name}
                case = _case(entry, pair, played)
                if _offers_what_is_called(case):
                    yield case
    for name in ("words", "calls"):
        plain = _scenario({"name": name}, _answers()[name], pair.up)
        for form in forms(pair.up, QUIRKS.over(pair.up)):
            prose, right = form.quirk.prose, form.variant.right or form.quirk.prose.right
            if prose.topic != "framing" or right != "same" or form.variant.as_sent:
                continue
            framed = with_quirks(plain, (form.name,))
            if changes(first_answer(framed, pair.up)[1], first_answer(plain, pair.up)[1]):
                entry = {"name": f"{name}+{form.name}", "title": prose.title, "like": name}
                yield _case(entry, pair, framed)


def _offers_what_is_called(case: GatewayCase) -> bool:
    """Whether the answer calls only what the client's API can offer: some have no custom tools."""
    down = case.pair.protocols[0]
    offered = down.parse(case.body("model", ""), client_target(down, "model"), False).tools
    custom = {tool.name for tool in offered if tool.custom}
    return all(call.name in custom for call in case.answered.tool_calls if call.custom)
