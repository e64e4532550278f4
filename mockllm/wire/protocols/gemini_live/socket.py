"""One connection of Gemini Live: https://ai.google.dev/api/live#send-messages

The client sends the setup once, then contents, sound, and results of calls; each of its turns is a
request with all of that so far. The service reports errors with close frames only.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.wire.protocols.gemini_common import wire
from mockllm.wire.protocols.gemini_live.fields import INTERNAL, fold
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.sockets import (
    Ask,
    Breach,
    Close,
    Heard,
    Interrupt,
    Listen,
    Opening,
    Step,
)
from mockllm.wire.protocols.values import (
    array,
    base64_bytes,
    count,
    json_object,
    mapping,
    objects,
    string,
)

_INVALID, _POLICY = 1007, 1008
_RATE = re.compile(r"rate=([1-9]\d{3,5})(?!\d)", re.ASCII)
_USUAL_RATE = 16_000
"""Samples in a second of what the client sends; each has two bytes."""

_NEARLY = 0.001
"""Seconds: pieces of sound do not add up exactly."""

_MANUAL = "Explicit activity control is not supported when automatic activity detection is enabled."


@dataclass(slots=True)
class _Sound:
    """What a microphone has sent since the last turn.

    Args:
        kind: its media type; "" for none.
        heard: what a scenario says about it, once `listens`.
        ends: whether the user has ended the turn.
    """

    kind: str = ""
    seconds: float = 0.0
    listens: bool = False
    heard: Heard | None = None
    ends: bool = False


class LiveConversation:
    """The client's side of one connection, as the service remembers it."""

    binary = True
    subprotocols: tuple[str, ...] = ()
    lifetime = 10 * 60.0
    notice = 10.0

    def __init__(self) -> None:
        self._setup: Json | None = None
        self._resumes = self._is_manual = self._may_interrupt = False
        self._takes_sound = False
        self._turns: list[Json] = []
        self._close: Close | None = None
        # The answer that is due or on its way
        self._running = 0
        self._interrupted = False
        self._messages: list[Json] = []
        self._answer: Json | None = None  # as the history has it, once it begins
        # Calls without results, their names by their ids
        self._called: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._answered: set[str] = set()
        self._sound = _Sound()

    def open(self, opening: Opening) -> list[Step]:
        """Nothing: the client speaks first."""
        return []

    def warn(self) -> list[Step]:
        """The time that is left."""
        return [wire({"goAway": {"timeLeft": f"{self.notice:g}s"}})]

    def expire(self) -> list[Step]:
        """The end of the connection."""
        return [Close(_POLICY, "The session exceeded its maximum duration.")]

    def receive(self, message: Fields) -> list[Step]:
        """What follows from a client's message."""
        sent: Json = fold(message)
        receive = {
            "setup": self._set_up,
            "clientContent": self._add_content,
            "realtimeInput": self._take_input,
            "toolResponse": self._take_results,
        }
        if len(sent) != 1 or not sent.keys() <= receive.keys():
            raise RequestError(
                f"A message has one of {', '.join(receive)}; this one has "
                f"{', '.join(map(repr, sent)) or 'nothing'}.",
                mistake="unknown-message",
            )
        ((name, value),) = sent.items()
        if (name == "setup") != (self._setup is None):
            problem = "setup is the first message, and no other."
            raise RequestError(problem, mistake="unknown-message")
        if not isinstance(value, dict):
            raise RequestError(f"{name} must be an object.", param=name)
        return receive[name](value)

    def _set_up(self, setup: Json) -> list[Step]:
        resumption = setup.pop("sessionResumption", None)
        self._setup, self._resumes = setup, resumption is not None
        given = mapping(setup.get("realtimeInputConfig"))
        self._is_manual = mapping(given.get("automaticActivityDetection")).get("disabled") is True
        self._may_interrupt = given.get("activityHandling") != "NO_INTERRUPTION"
        handle = string(mapping(resumption).get("handle"))
        if handle:
            self._turns = _read_handle(handle)
        return [wire({"setupComplete": {}})]

    def _add_content(self, content: Json) -> list[Step]:
        turns = content.get("turns")
        added = [turns] if isinstance(turns, dict) else array(turns)
        steps = self._interrupt()
        self._turns += [{"role": "user", **mapping(turn)} for turn in added]
        return [*steps, self._ask()] if content.get("turnComplete") is True else steps

    def _take_results(self, given: Json) -> list[Step]:
        """The results of some calls; the model goes on once it has all."""
        results, steps = [], list[Step]()
        for result in objects(given.get("functionResponses")):
            id = string(result.get("id")) or self._id_of(string(result.get("name")))
            if id in self._cancelled:
                problem = f"The function call {id!r} was cancelled before its response came."
                steps.append(Breach("result-of-cancelled", problem))
                continue
            if result.get("willContinue") is True:
                continue
            if self._called.pop(id, None) is None:
                mistake = "message-result-again" if id in self._answered else "context-missing"
                problem = f"No function call waits for the response {id!r}."
                raise RequestError(problem, mistake=mistake)
            self._answered.add(id)
            results.append({"functionResponse": {**result, "id": id}})
        if results:
            self._turns.append(_user_turn(*results))
        return [*steps, self._ask()] if results and not self._called else steps

    def _id_of(self, name: str) -> str:
        """The id of the first call of a name that waits for its result."""
        return next((id for id, called in self._called.items() if called == name), "")

    # Nothing recognises speech: scenarios say what is heard.

    def _take_input(self, given: Json) -> list[Step]:
        """What a microphone, a camera and a keyboard send."""
        if not self._is_manual and ("activityStart" in given or "activityEnd" in given):
            raise RequestError(_MANUAL)
        outside = self._find_outside(given)
        for blob in (given.get("audio"), *array(given.get("mediaChunks"))):
            kind = string(mapping(blob).get("mimeType"))
            if kind.startswith("audio/"):
                rate = _RATE.search(kind)
                size = len(string(mapping(blob).get("data"))) * 3 / 4
                self._sound.seconds += size / 2 / (int(rate[1]) if rate else _USUAL_RATE)
                self._sound.kind = kind
        if "text" in given:
            steps = self._interrupt()
            self._turns.append(_user_turn({"text": string(given["text"])}))
            return [*steps, self._ask()]
        if "activityStart" in given:
            return self._interrupt() if self._may_interrupt else []
        self._sound.ends = "activityEnd" in given or given.get("audioStreamEnd") is True
        return [*outside, *self._attend()]

    def _find_outside(self, given: Json) -> list[Step]:
        """Sound that belongs to no turn, said once until the user begins one."""
        if "activityStart" in given or "activityEnd" in given:
            self._takes_sound = "activityStart" in given
        elif (
            self._is_manual
            and not self._takes_sound
            and ("audio" in given or "mediaChunks" in given)
        ):
            self._takes_sound = True
            return [
                Breach("sound-outside", "Sound came before activityStart or after activityEnd.")
            ]
        return []

    def _attend(self) -> list[Step]:
        """What follows from the sound so far."""
        sound, heard = self._sound, self._sound.heard
        if not sound.kind or (self._running and self._answer is None):
            return []
        if not sound.listens:
            sound.listens = True
            return [Listen(lambda words: self._body(_user_turn({"text": words})))]
        is_said = heard is not None and sound.seconds > heard.after - _NEARLY
        ends = sound.ends or (is_said and not self._is_manual)
        is_busy = self._running or self._called
        if not ends or (is_busy and not (heard and heard.barge_in)):
            return []
        steps = self._interrupt()
        if heard is None:
            self._turns.append(_user_turn({"inlineData": {"mimeType": sound.kind}}))
        else:
            self._turns.append(_user_turn({"text": heard.say}))
            if "inputAudioTranscription" in (self._setup or {}):
                steps.append(_content(inputTranscription={"text": heard.say}))
        return [*steps, self._ask()]

    def hear(self, heard: Heard | None) -> list[Step]:
        """What follows once it is known what the user says."""
        self._sound.heard = heard
        return self._attend()

    # Answers

    def _ask(self) -> Ask:
        self._running += 1
        self._sound = _Sound()
        return Ask({})

    def _body(self, *more: Json) -> Json:
        return {**(self._setup or {}), "turns": [*self._turns, *more]}

    def request(self, ask: Ask, is_stored: Callable[[str], bool]) -> Json | tuple[str, ...]:
        """The setup with the history."""
        return self._body()

    def messages(
        self, ask: Ask, status: int, headers: Mapping[str, str], payloads: list[str]
    ) -> list[str]:
        """The messages of an answer, but for the close frame of an error."""
        values = [json_object(text) or {} for text in payloads]
        if status >= 400:
            message = string(mapping((values or [{}])[0].get("error")).get("message"))
            is_internal = status == 429 or status >= 500
            code = INTERNAL if is_internal else _INVALID if status == 400 else _POLICY
            self._close = Close(code, message or "".join(payloads))
            return []
        close = mapping(values[-1].get("close")) if values else {}
        if close:
            self._close = Close(count(close.get("code")), string(close.get("reason")))
            payloads, values = payloads[:-1], values[:-1]
        self._messages, self._sound.seconds = values, 0.0
        self._answer = {"role": "model"}
        self._turns.append(self._answer)
        self._keep(self._answer, values)
        return payloads

    def _keep(self, answer: Json, messages: Iterable[Fields]) -> None:
        """Puts what is sent of an answer into the history, with calls that wait for results."""
        answer["parts"] = parts = _parts(messages)
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        self._called = {string(call.get("id")): string(call.get("name")) for call in calls}

    def _interrupt(self) -> list[Step]:
        """The end of the answer that is on its way, or of calls that wait for results."""
        if not self._running:
            return self._break_off(answer=False)
        self._interrupted = True
        return [Interrupt()]

    def _break_off(self, *, answer: bool) -> list[Step]:
        steps: list[Step] = []
        if self._called:
            steps.append(wire({"toolCallCancellation": {"ids": list(self._called)}}))
        self._cancelled |= self._called.keys()
        self._called.clear()
        if steps or answer:
            steps += _content(interrupted=True), _content(turnComplete=True)
        return steps

    def finish(self, ask: Ask, sent: int) -> list[Step]:
        """The end of the connection after an error, of an interrupted turn, or a new handle."""
        self._running = max(0, self._running - 1)
        interrupted, self._interrupted = self._interrupted, False
        if not (self._sound.heard and self._sound.heard.barge_in):
            self._sound = _Sound()
        if self._close is not None:
            return [self._close]
        begun, self._answer = self._answer, None
        if interrupted:
            if begun is not None:
                self._keep(begun, self._messages[:sent])
            is_cut = begun is None or sent < len(self._messages)
            return self._break_off(answer=is_cut)
        if not self._resumes or self._called:
            return []
        update = {"newHandle": _write_handle(self._turns), "resumable": True}
        return [wire({"sessionResumptionUpdate": update})]


def _content(**fields: object) -> str:
    return wire({"serverContent": fields})


def _user_turn(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def _parts(messages: Iterable[Fields]) -> list[Json]:
    """The parts of an answer as the history has them: its words and its calls."""
    texts: list[str] = []
    calls: list[Json] = []
    for message in messages:
        content = mapping(message.get("serverContent"))
        parts = objects(mapping(content.get("modelTurn")).get("parts"))
        texts += [string(part.get("text")) for part in parts if not part.get("thought")]
        texts.append(string(mapping(content.get("outputTranscription")).get("text")))
        called = objects(mapping(message.get("toolCall")).get("functionCalls"))
        calls += ({"functionCall": call} for call in called)
    text = "".join(texts)
    return [*([{"text": text}] if text or not calls else []), *calls]


# A handle has the history itself, so that any process can take the session up.


def _write_handle(turns: list[Json]) -> str:
    kept = [{**turn, "parts": _without_data(turn.get("parts"))} for turn in turns]
    return base64.urlsafe_b64encode(wire({"turns": kept}).encode()).decode()


def _without_data(parts: object) -> list[Any]:
    return [part for part in array(parts) if "inlineData" not in mapping(part)]


def _read_handle(handle: str) -> list[Json]:
    data = base64_bytes(handle.replace("-", "+").replace("_", "/"))
    history = json_object((data or b"").decode("utf-8", "replace"))
    if history is None:
        raise RequestError("The session resumption handle is not known.", status=404)
    return objects(history.get("turns"))
