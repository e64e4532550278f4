"""One connection of Realtime: the session, its items, the user's sound, and its answers.

https://platform.openai.com/docs/api-reference/realtime-client-events
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.seeded import derive
from mockllm.core.text import shorten
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_common import bad_value, invalid_type, missing
from mockllm.wire.protocols.openai_realtime import errors, session
from mockllm.wire.protocols.openai_realtime.dialects import AS_IT_IS, dialect_of
from mockllm.wire.protocols.openai_realtime.items import check_item, follow
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
from mockllm.wire.protocols.sound import Format, format_of
from mockllm.wire.protocols.values import mapping, string

_LEAST = 100
"""How many milliseconds of sound a turn must have that the client ends."""

_MOST_EVENTS = 15 * 1024 * 1024
"""The most characters of sound in an event."""

_BY_VOICE: Json = {"type": "response.create"}
"""Asks for an answer where the service finds that the user has spoken."""

_LIMITS = [
    {"name": "requests", "limit": 10_000, "remaining": 9_999, "reset_seconds": 0.006},
    {"name": "tokens", "limit": 30_000_000, "remaining": 29_999_000, "reset_seconds": 0.002},
]

_RESPONSE = frozenset(
    {"audio", "conversation", "input", "instructions", "max_output_tokens", "metadata"}
    | {"output_modalities", "parallel_tool_calls", "prompt", "reasoning", "tool_choice", "tools"}
)


@dataclass(slots=True)
class _Answer:
    """An answer on its way.

    Args:
        message: the client's; {} where the end of speech asked.
        payloads: its events; none until they are known.
        place: of its items in the conversation.
        reason: why it is cancelled; "" while it is not.
        refusal: of the client's message.
    """

    message: Fields
    payloads: list[str] = field(default_factory=list)
    place: int = 0
    reason: str = ""
    refusal: RequestError | None = None

    @property
    def is_outside(self) -> bool:
        """Whether it belongs to no conversation."""
        return mapping(self.message.get("response")).get("conversation") == "none"


@dataclass(slots=True)
class _Sound:
    """The user's sound.

    Args:
        buffered: the milliseconds since the last turn.
        before: those of the turns before.
        speech: the id of the item that the user speaks; "" while nobody does.
        heard: what a scenario says of it; None: nothing.
        asked: whether that is known.
        committing: whether the client has ended the turn.
    """

    buffered: float = 0.0
    before: float = 0.0
    speech: str = ""
    heard: Heard | None = None
    asked: bool = False
    committing: bool = False


class RealtimeConversation:
    """The client's side of one connection, as the service remembers it."""

    binary = False
    subprotocols: tuple[str, ...] = ("realtime",)
    lifetime = float(session.LIFETIME)
    notice = 0.0

    def __init__(self) -> None:
        self._seed = ""
        self._count = 0
        self._session: Json = {}
        self._items: list[Json] = []
        self._lengths: dict[str, float] = {}  # of the sound of the model's items
        self._answers: dict[str, _Answer] = {}
        self._ids: set[str] = set()
        self._sound = _Sound()
        self._later: list[str] = []  # what comes after the first event of the next answer
        self._dialect = AS_IT_IS
        self._rejection: Close | None = None
        self._cut: dict[str, int] = {}
        """Items that the user interrupted, and which further answer shows that no truncation
        came."""

    # Both ends of the connection

    def open(self, opening: Opening) -> list[Step]:
        """The session; its refusal is an error and the end of the connection."""
        query = opening.target.query
        self._dialect = dialect_of(opening)
        model = query.get("model") or query.get("deployment", "")
        kind = "transcription" if query.get("intent") == "transcription" else "realtime"
        if not model and kind == "realtime" and "call_id" not in query:
            raise self._reject(errors.NO_MODEL)
        if self._dialect is AS_IT_IS and "realtime=v1" in opening.headers.get("openai-beta", ""):
            raise self._reject(errors.OLD_SHAPE)
        self._seed = f"realtime {model}"
        self._session = session.new_session(model or "gpt-realtime", self._seed, kind)
        return [*self._say("session.created", session=self._session)]

    def _reject(self, error: RequestError) -> RequestError:
        kind = errors.error_body(error)["error"]["type"]
        self._rejection = Close(4000, f"{kind}.{error.code}")
        return error

    def warn(self) -> list[Step]:
        """Nothing: the service gives no notice."""
        return []

    def expire(self) -> list[Step]:
        """The error for a session that is 60 minutes old, and its end."""
        return [*self._error(errors.EXPIRED, {}), Close(1001)]

    # Messages

    def receive(self, message: Fields) -> list[Step]:
        """What follows from a client's message; one that is refused gets an error, and the session
        stays open."""
        message = self._dialect.read(message)
        handler = _HANDLERS.get(string(message.get("type")))
        try:
            if handler is None:
                refusal = bad_value("type", str(message.get("type")), tuple(_HANDLERS))
                refusal.mistake = "unknown-message"
                raise refusal
            return handler(self, message)
        except RequestError as refusal:
            if handler in _QUIETLY and not refusal.mistake:
                return [*self._error(refusal, message)]
            lane = f"refused {self._next()}"  # it waits for no other answer
            self._answers[lane] = _Answer(message, refusal=refusal)
            return [Ask(message, lane)]

    def update_session(self, message: Fields) -> list[Step]:
        self._session = session.update(self._session, message.get("session"))
        return [*self._say("session.updated", session=self._session)]

    # Items

    def create_item(self, message: Fields) -> list[Step]:
        item = check_item(message.get("item"), [*self._items, *self._coming()])
        given = {"id": string(item.get("id")) or self._id("item"), **item}
        at, previous = self._place(message.get("previous_item_id"))
        if item["type"] != "function_call_output":
            given = {"status": "completed", **given}
        self._items.insert(at, given)
        self._sound.asked = False
        return [*self._announce(given, previous)]

    def _place(self, after: object) -> tuple[int, str | None]:
        """Where an item goes, and the id of the one before it."""
        if after == "root":
            return 0, None
        if after is None:
            return len(self._items), self._items[-1]["id"] if self._items else None
        return self._index(str(after), "adding item", "previous_item_id") + 1, str(after)

    def _announce(self, item: Json, previous: str | None) -> list[str]:
        place = {"previous_item_id": previous, "item": item}
        added = self._say("conversation.item.added", **place)
        return [*added, *self._say("conversation.item.done", **place)]

    def _index(self, id: str, action: str, param: str) -> int:
        for at, item in enumerate(self._items):
            if item["id"] == id:
                return at
        raise errors.missing_item(action, param, id)

    def retrieve_item(self, message: Fields) -> list[Step]:
        at = self._index(string(message.get("item_id")), "retrieving item", "retrieve")
        return [*self._say("conversation.item.retrieved", item=self._items[at])]

    def delete_item(self, message: Fields) -> list[Step]:
        id = string(message.get("item_id"))
        del self._items[self._index(id, "deleting item", "delete")]
        return [*self._say("conversation.item.deleted", item_id=id)]

    def truncate_item(self, message: Fields) -> list[Step]:
        """What the user has not heard of the model's sound is forgotten, with the transcript."""
        id, end = string(message.get("item_id")), message.get("audio_end_ms")
        item = self._items[self._index(id, "truncating item", "truncate")]
        length = self._lengths.get(id, 0.0)
        if not length:
            raise errors.NOT_SPOKEN
        if not isinstance(end, int) or end < 0:
            raise invalid_type("audio_end_ms", "a number of milliseconds", end)
        if end > length:
            raise RequestError(
                f"Audio content of {length:.0f}ms is already shorter than {end}ms",
                param="audio_end_ms",
                code="invalid_value",
                mistake="truncated-beyond",
            )
        self._cut.pop(id, None)
        self._lengths[id] = end
        item["content"] = [{"type": "output_audio"}]
        place = {"item_id": id, "content_index": 0, "audio_end_ms": end}
        return [*self._say("conversation.item.truncated", **place)]

    # The user's sound

    def append_sound(self, message: Fields) -> list[Step]:
        text = message.get("audio")
        if not isinstance(text, str):
            raise missing("audio")
        if len(text) > _MOST_EVENTS:
            raise RequestError("The audio of an event has at most 15 MiB.", param="audio")
        try:
            size = len(b64decode(text, validate=True))
        except ValueError:
            raise bad_value("audio", shorten(text, 40), ("base64-encoded audio",)) from None
        sound = self._sound
        waits = self._running() is not None and not (sound.heard and sound.heard.barge_in)
        sound.buffered += self._format().length(size)
        if waits and sound.asked:
            sound.before += sound.buffered
            sound.buffered = 0.0
            return []
        return self._spoken() if sound.asked else self._listen()

    def _format(self) -> Format:
        return format_of(session.sound_type(session.input_of(self._session)))

    def _listen(self) -> list[Step]:
        """Asks what is said, unless the model waits for the result of a call."""
        items = [*self._items, *self._coming()]
        if items and items[-1]["type"] == "function_call":
            return []
        return [Listen(lambda words: self._body([*items, self._speech(words)], {}))]

    def _coming(self) -> list[Json]:
        """The items of the answer that is on its way: clients answer a call before the end."""
        running = self._answers.get("")
        return [] if running is None else [said.item for said in follow(running.payloads).items]

    def hear(self, heard: Heard | None) -> list[Step]:
        """What follows from what the user says."""
        self._sound.asked, self._sound.heard = True, heard
        return self._commit() if self._sound.committing else self._spoken()

    def _spoken(self) -> list[Step]:
        """The beginning and the end of the user's speech, where the service finds them. An answer
        on its way is interrupted first; its end (`finish`) leads here again."""
        sound, detection = self._sound, session.detection_of(self._session)
        heard, running = sound.heard, self._running()
        if heard is None or detection is None:
            return []
        is_over, steps = sound.buffered >= heard.after * 1000, list[Step]()
        if running is not None:
            interrupts = heard.barge_in and detection.get("interrupt_response") is not False
            if not (is_over and interrupts):
                return []
            return [*self._began(), *self._interrupt(running, "turn_detected")]
        if not sound.speech:
            steps += self._began()
        if is_over:
            end = round(sound.before + sound.buffered)
            place = {"audio_end_ms": end, "item_id": sound.speech}
            steps += self._say("input_audio_buffer.speech_stopped", **place)
            steps += self._end_turn()
            if detection.get("create_response") is not False:
                steps += self._ask(_BY_VOICE)
        return steps

    def _began(self) -> list[str]:
        sound = self._sound
        sound.speech = self._id("item")
        place = {"audio_start_ms": round(sound.before), "item_id": sound.speech}
        return self._say("input_audio_buffer.speech_started", **place)

    def commit_sound(self, message: Fields) -> list[Step]:
        """The end of a turn, as the client says it."""
        sound = self._sound
        if sound.buffered < _LEAST:
            raise errors.empty_buffer(sound.buffered)
        sound.committing = True
        return self._commit() if sound.asked else (self._listen() or self._commit())

    def _commit(self) -> list[Step]:
        self._sound.committing = False
        return self._end_turn()

    def _end_turn(self) -> list[Step]:
        """The item of what the user said, and its transcript, which comes later."""
        sound, transcription = self._sound, session.input_of(self._session).get("transcription")
        words, seconds = sound.heard.say if sound.heard else "", sound.buffered / 1000
        id = sound.speech or self._id("item")
        item = {**self._speech(words), "id": id}
        previous = self._items[-1]["id"] if self._items else None
        self._items.append(item)
        shown_item = {**item, "content": [{"type": "input_audio", "transcript": None}]}
        place = {"previous_item_id": previous, "item_id": id}
        self._sound = _Sound(before=sound.before + sound.buffered)
        steps = [
            *self._say("input_audio_buffer.committed", **place),
            *self._announce(shown_item, previous),
        ]
        if isinstance(transcription, Mapping):
            self._later = self._transcript(id, words, seconds)
        if session.detection_of(self._session) is None or self._running() is not None:
            return [*steps, *self._transcripts()]
        return [*steps]

    def _speech(self, words: str) -> Json:
        content = [{"type": "input_audio", "transcript": words}]
        kind = {"type": "message", "status": "completed", "role": "user"}
        return {"id": "item_spoken", **kind, "content": content}

    def _transcript(self, id: str, words: str, seconds: float) -> list[str]:
        kind = "conversation.item.input_audio_transcription"
        place = {"item_id": id, "content_index": 0}
        usage = {"type": "duration", "seconds": round(seconds, 1)}
        delta = self._say(f"{kind}.delta", **place, delta=words) if words else []
        return [*delta, *self._say(f"{kind}.completed", **place, transcript=words, usage=usage)]

    def _transcripts(self) -> list[str]:
        later, self._later = self._later, []
        return later

    def clear_sound(self, message: Fields) -> list[Step]:
        self._sound = _Sound(before=self._sound.before + self._sound.buffered)
        return [*self._say("input_audio_buffer.cleared")]

    def clear_output(self, message: Fields) -> list[Step]:
        return [*self._say("output_audio_buffer.cleared")]

    # Answers

    def create_response(self, message: Fields) -> list[Step]:
        response = message.get("response")
        if response is not None:
            if not isinstance(response, Mapping):
                raise invalid_type("response", "an object", response)
            session.check_fields(response, "response", _RESPONSE)
        return self._ask(message)

    def _ask(self, message: Fields) -> list[Step]:
        answer, lane = _Answer(message), ""
        if answer.is_outside:
            lane = f"outside {self._next()}"
        elif self._running() is not None:
            by_client = self._answers[""].message is not _BY_VOICE
            raise errors.active_response(self._active_id(), known=by_client)
        self._answers[lane] = answer
        self._sound.asked = False
        return [*self._forgotten(), Ask(message, lane)]

    def _forgotten(self) -> Iterator[Step]:
        """The interrupted items of which the client has not said how much was heard."""
        for id, answers in tuple(self._cut.items()):
            self._cut[id] -= 1
            if answers == 1:
                del self._cut[id]
                problem = (
                    f"The user interrupted the sound of '{id}', and no conversation.item.truncate "
                    "says how much of it was heard, so the model believes all that was sent."
                )
                yield Breach("truncation-missing", problem)

    def _running(self) -> str | None:
        """The lane of the answer that the conversation gets."""
        return "" if "" in self._answers else None

    def _active_id(self) -> str:
        payloads = self._answers[""].payloads
        return string(_response(payloads[0]).get("id")) if payloads else "resp_pending"

    def cancel_response(self, message: Fields) -> list[Step]:
        id = message.get("response_id")
        for lane, answer in self._answers.items():
            known = _response(answer.payloads[0]).get("id") if answer.payloads else None
            if answer.refusal is None and (known == id if id else lane == ""):
                return self._interrupt(lane, "client_cancelled")
        raise errors.NOTHING_TO_CANCEL

    def _interrupt(self, lane: str, reason: str) -> list[Step]:
        self._answers[lane].reason = reason
        return [Interrupt(lane)]

    def request(self, ask: Ask, is_stored: Callable[[str], bool]) -> Json | tuple[str, ...]:
        """The body of a request: session, items and the fields of the response."""
        answer = self._answers[ask.lane]
        if answer.refusal is not None:
            raise answer.refusal
        return self._body(self._items, mapping(ask.message.get("response")))

    def _body(self, items: Sequence[Json], response: Fields) -> Json:
        is_outside, given = response.get("conversation") == "none", response.get("input")
        used = given if isinstance(given, list) else items
        return {
            "model": string(self._session.get("model")),
            "session": self._session,
            "conversation": None if is_outside else self._conversation,
            "items": [self._resolve(item) for item in used],
            "response": {name: value for name, value in response.items() if name != "input"},
        }

    def _resolve(self, item: Any) -> Any:
        """An item, or the one of the conversation that it names."""
        if mapping(item).get("type") != "item_reference":
            return item
        return next((known for known in self._items if known["id"] == item.get("id")), item)

    @property
    def _conversation(self) -> str:
        return "conv_" + derive(self._seed, "conversation", length=21)

    def messages(
        self, ask: Ask, status: int, headers: Mapping[str, str], payloads: Sequence[str]
    ) -> list[str]:
        """The events of an answer, with what the service says after it."""
        if status >= 400:
            return self._failure(ask, status, payloads)
        known = _response(payloads[0]).get("id") if payloads else None
        texts = list(payloads)
        if known in self._ids:  # the same turn again: its ids must differ
            texts = _rename_ids(texts, self._next())
        sent = [*texts[:1], *self._transcripts(), *texts[1:]]
        if texts:
            self._ids.add(string(known))
            if _kind(texts[-1]) == "response.done":
                sent += self._say("rate_limits.updated", rate_limits=_LIMITS)
        answer = self._answers[ask.lane]
        answer.payloads, answer.place = sent, len(self._items)
        return self._dialect.write(sent)

    def _failure(self, ask: Ask, status: int, payloads: Sequence[str]) -> list[str]:
        """An error of the request; one of the service is a response that failed."""
        body = json.loads(payloads[0]) if payloads else {}
        error = mapping(body.get("error")) or {"message": "".join(payloads)}
        if status != 429 and status < 500:
            shown = {**error, "event_id": ask.message.get("event_id")}
            return self._say("error", error=shown)
        id = self._id("resp")
        shown = {name: error.get(name) for name in ("type", "code", "message")}
        response: Json = {"object": "realtime.response", "id": id, "output": []}
        response["status_details"] = None
        details = {"type": "failed", "error": shown}
        known = {"conversation_id": self._conversation, "usage": None}
        begun = {**response, "status": "in_progress", **known}
        ended = {**response, "status": "failed", "status_details": details, **known}
        return [
            *self._say("response.created", response=begun),
            *self._say("response.done", response=ended),
        ]

    def finish(self, ask: Ask, sent: int) -> list[Step]:
        """What follows from the end of an answer: its items belong to the conversation."""
        if self._rejection is not None:
            return [self._rejection]
        answer = self._answers.get(ask.lane)
        if answer is None or answer.message is not ask.message:
            return []  # of a message that is no JSON
        del self._answers[ask.lane]
        if not answer.payloads:
            self._sound.asked = False
            return []
        followed = follow(answer.payloads[:sent])
        if not answer.is_outside:
            self._items[answer.place : answer.place] = [said.item for said in followed.items]
            for said in followed.items:
                id, length = said.item["id"], self._out().length(said.sound)
                self._lengths[id] = length
                if length and answer.reason:
                    # The user's next words are answered before the client can say anything.
                    self._cut[id] = 2 if answer.reason == "turn_detected" else 1
        steps: list[Step] = []
        if answer.reason and not followed.is_over:
            steps += self._cancellation(answer, followed.response, followed.items)
        if answer.reason == "turn_detected":
            return [*steps, *self._spoken()]
        self._sound.asked = False
        return steps

    def _out(self) -> Format:
        audio = mapping(self._session.get("audio"))
        return format_of(session.sound_type(audio.get("output")))

    def _cancellation(self, answer: _Answer, response: Json, items: Sequence[Any]) -> list[str]:
        """The end of an answer that was interrupted."""
        events: list[str] = []
        for index, said in enumerate(items):
            if said.item["status"] == "in_progress":
                said.item["status"] = "incomplete"
                place = {"response_id": response["id"], "output_index": index}
                events += self._say("response.output_item.done", **place, item=said.item)
        details = {"type": "cancelled", "reason": answer.reason}
        ended = {**response, "status": "cancelled", "status_details": details}
        ended["output"] = [said.item for said in items]
        return [*events, *self._say("response.done", response=ended)]

    # Events of the service

    def _say(self, kind: str, **fields: object) -> list[str]:
        event = {"type": kind, "event_id": self._id("event"), **fields}
        return self._dialect.write([dumps(event)])

    def _error(self, error: RequestError, message: Fields) -> list[str]:
        inner = {**errors.error_body(error)["error"], "event_id": message.get("event_id")}
        return self._say("error", error=inner)

    def _id(self, prefix: str) -> str:
        return f"{prefix}_" + derive(self._seed, prefix, self._next(), length=21)

    def _next(self) -> int:
        self._count += 1
        return self._count


_Handler = Callable[[RealtimeConversation, Fields], list[Step]]
_HANDLERS: dict[str, _Handler] = {
    "session.update": RealtimeConversation.update_session,
    "input_audio_buffer.append": RealtimeConversation.append_sound,
    "input_audio_buffer.commit": RealtimeConversation.commit_sound,
    "input_audio_buffer.clear": RealtimeConversation.clear_sound,
    "output_audio_buffer.clear": RealtimeConversation.clear_output,
    "conversation.item.create": RealtimeConversation.create_item,
    "conversation.item.retrieve": RealtimeConversation.retrieve_item,
    "conversation.item.delete": RealtimeConversation.delete_item,
    "conversation.item.truncate": RealtimeConversation.truncate_item,
    "response.create": RealtimeConversation.create_response,
    "response.cancel": RealtimeConversation.cancel_response,
}
"""What a client may send."""

_QUIETLY = (
    RealtimeConversation.cancel_response,
    RealtimeConversation.truncate_item,
    RealtimeConversation.commit_sound,
)
"""What is often too late without a mistake of the client: its refusal stands in no journal."""


def _kind(payload: str) -> str:
    try:
        return string(mapping(json.loads(payload)).get("type"))
    except ValueError:  # broken on purpose
        return ""


def _response(payload: str) -> Fields:
    try:
        return mapping(mapping(json.loads(payload)).get("response"))
    except ValueError:
        return {}


_ID = re.compile(r'"((?:resp|item|event)_\w+)"')


def _rename_ids(texts: list[str], number: int) -> list[str]:
    """The events of an answer with other ids."""
    return [
        _ID.sub(lambda it: f'"{it[1].partition("_")[0]}_{derive(it[1], number, length=21)}"', text)
        for text in texts
    ]
