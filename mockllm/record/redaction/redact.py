"""Takes the secrets out of an exchange before any of it is stored; and what finds its recording by
its own request: the digest of the request, and where it had secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, urlsplit

from mockllm.core.request import Request
from mockllm.play.matching.fingerprint import (
    MAX_STRINGS,
    form_fields,
    redacted_strings,
    request_digest,
    route_digest,
)
from mockllm.play.matching.hidden import HIDDEN_SEGMENT, body_text, hidden_tag, values_of_parameters
from mockllm.play.matching.route_selection import RouteRequest, hidden_value_at, normal_path
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.socket_session import (
    Recording,
    SocketMessage,
    SocketSession,
    opening_session,
)
from mockllm.record.redaction.credentials import (
    HeaderAllowlist,
    account_names,
    clean_url,
    credentials_of,
)
from mockllm.record.redaction.find.bodies import (
    MessagesBody,
    Moved,
    body_of,
    decode_bytes,
    edit_text,
    encode_text,
)
from mockllm.record.redaction.find.finder import Finder
from mockllm.record.redaction.find.patterns import Detector
from mockllm.record.redaction.machine import answer_edits, model_request, request_edits
from mockllm.record.redaction.placeholders import (
    Placeholders,
    edits,
    is_placeholder,
    recut,
    wildcards,
    with_length,
)
from mockllm.record.redaction.rules import (
    Rules,
    compiled_paths,
    compiled_patterns,
    keep_from,
    known_kinds,
)
from mockllm.scenario.model import Ignored
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.records import StoredAnswers
from mockllm.wire.protocols.values import json_object, json_value

_DEFAULT = Rules()


@dataclass(frozen=True, slots=True)
class TextRedactor:
    """Replaces what its finder finds by placeholders."""

    finder: Finder
    placeholders: Placeholders

    def text(self, text: str) -> str:
        """A text without its secrets."""
        changes = edits(self.finder.find(text), self.placeholders)
        return edit_text(text, changes) if changes else text

    def placeholder(self, secret: str) -> str:
        """The placeholder of a value."""
        return secret if is_placeholder(secret) else self.placeholders.give(secret)


class Redactor:
    """Replaces secrets by placeholders; one for all the exchanges of a run.

    The same secret has the same placeholder in all turns of a conversation: a request that
    continues an answer which the service keeps has the placeholders of that answer, and one that
    carries its history those of the last request with the same first message.

    Raises:
        UsageError: a pattern or a path cannot be read.
    """

    def __init__(self, rules: Rules = _DEFAULT) -> None:
        keep = keep_from(rules.keep, "keep")
        self._by_rules = Finder(
            compiled_patterns(rules.patterns),
            compiled_paths(rules.json_paths),
            detector=Detector(known_kinds(rules.kinds, "kinds"), keep.kinds),
            keep=keep,
        )
        self._allowlist = HeaderAllowlist(rules.headers)
        self._kept: dict[str, Placeholders] = {}
        self._by_opening: dict[str, Placeholders] = {}
        # A recorder asks twice for the opening of each conversation, and often for a system prompt.
        self._patterns = lru_cache(_MOST_PATTERNS)(lambda text: wildcards(self.text(text)))

    def exchange(self, captured: Captured, placeholders: Placeholders | None = None) -> Captured:
        """The exchange without its secrets, with as many chunks, at the same times.

        Args:
            placeholders: those so far, where the exchange belongs together with others.

        Where a body has no secret its bytes stay as they are, compressed if they were. Where it
        has one it is no longer compressed, and `content-length` changes with it.

        Raises:
            WireError: a body is compressed in a way that is not known here, so that it cannot be
                searched.
        """
        captured = _without_machine(captured)
        plain = captured.plain().plain_request()
        if placeholders is None:
            placeholders = self.placeholders(plain)
        bodies = body_of(plain.request_body), body_of(plain.body)
        request, response = (body.text for body in bodies)
        known = (*placeholders.known, *credentials_of(captured))
        texts = captured.url, request, response
        finder = self._finder(texts, known, account_names(captured))
        redactor = TextRedactor(finder, placeholders)
        # Placeholders are numbered in this order: URL, request, response, headers.
        url = clean_url(captured.url, redactor.placeholder, redactor.text)
        in_request = edits(finder.find(request), placeholders)
        in_response = edits(finder.find(response), placeholders)
        clean = captured
        if in_request:
            clean = _with_request(clean, plain, bodies[0].edit(in_request)[0])
        if in_response:
            clean = _with_response(clean, plain, *bodies[1].edit(in_response))
        self.keep(request, response, placeholders)
        if placeholders.known:
            _put(self._by_opening, [_conversation_of(plain)[0]], placeholders)
        return replace(
            clean,
            url=url,
            hidden=_hidden_values(plain, replace(clean, url=url)),
            request_headers=self._allowlist.of_request(
                clean.request_headers, redactor.placeholder, redactor.text
            ),
            headers=self._allowlist.of_response(clean.headers, redactor.placeholder, redactor.text),
            trailers=self._allowlist.of_response(
                clean.trailers, redactor.placeholder, redactor.text
            ),
            reason=None if clean.reason is None else redactor.text(clean.reason),
        )

    def recording(self, recorded: Recording, placeholders: Placeholders | None = None) -> Recording:
        """The exchange, or the session, without its secrets, as `exchange` and `socket` give it."""
        if isinstance(recorded, SocketSession):
            return self.socket(recorded, placeholders)
        return self.exchange(recorded, placeholders)

    def socket(
        self, session: SocketSession, placeholders: Placeholders | None = None
    ) -> SocketSession:
        """The session without its secrets, with as many messages, at the same times.

        Args:
            placeholders: those so far, where the session belongs together with others.

        Raises:
            WireError: the answer that refused it is compressed in a way that is not known here.
        """
        opening = session.opening
        placeholders = Placeholders() if placeholders is None else placeholders
        sides = tuple(
            [at for at, message in enumerate(session.messages) if message.side == side]
            for side in ("client", "service")
        )
        bodies = [MessagesBody(_text_bytes(session.messages[at]) for at in side) for side in sides]
        known = (*placeholders.known, *credentials_of(opening))
        finder = self._finder([body.text for body in bodies], known, account_names(opening))
        messages = list(session.messages)
        for side, body in zip(sides, bodies, strict=True):
            changes = edits(finder.find(body.text), placeholders)
            for at, data in zip(side, body.edit(changes) if changes else (), strict=bool(changes)):
                messages[at] = _with_data(messages[at], data)
        clean = opening_session(self.exchange(opening, placeholders))
        return replace(clean, messages=tuple(messages))

    def text(self, text: str) -> str:
        """A text without its secrets; one that is a JSON document or an event stream stays one."""
        return self.for_text(text, Placeholders((text,))).text(text)

    def json(self, value: Any) -> Any:
        """A JSON value without its secrets."""
        written = json.dumps(value, ensure_ascii=False)
        clean = self.text(written)
        return value if clean == written else json.loads(clean)

    def pattern(self, text: str) -> str | None:
        """A regular expression that finds the text as it was and as it is redacted; None where
        nothing in it is, or would be, redacted.

        It is not anchored: `search` finds it anywhere.
        """
        return self._patterns(text)

    def for_text(self, text: str, placeholders: Placeholders) -> TextRedactor:
        """A function that takes the secrets out of a text that belongs together with others."""
        return TextRedactor(self._finder((text,), placeholders.known), placeholders)

    def _finder(
        self, texts: Iterable[str], known: Iterable[str], names: frozenset[str] = frozenset()
    ) -> Finder:
        """A finder that finds in each of some texts also the secrets that only another one
        shows."""
        # In an order, not in a set: where two secrets have a part in common, the first one gets it.
        every = dict.fromkeys(secret for secret in known if secret not in names)
        before = len(every)
        finder = self._by_rules.for_texts(every, names)
        places = (place for text in texts for place in finder.find(text))
        found = (secret for place in places for secret in place.secrets())
        every |= dict.fromkeys(secret for secret in found if secret not in names)
        return finder if len(every) == before else finder.knowing(every)

    # What a service keeps of a conversation

    def placeholders(self, plain: Captured) -> Placeholders:
        """Those of the answer that a request continues, or of the conversation whose history it
        has, or new ones."""
        body = plain.request_body
        fields = ("conversation", *(kind.field for kind in _stored_answers()))
        if self._kept and any(f'"{name}"'.encode() in body for name in fields):
            for id in _continued_ids(body):
                if id in self._kept:
                    return self._kept[id].copy()
        opening, goes_on = _conversation_of(plain) if self._by_opening else ("", False)
        known = self._by_opening.get(opening) if goes_on else None
        return Placeholders() if known is None else known.copy()

    def keep(self, request: str, response: str, placeholders: Placeholders) -> None:
        """Keeps the placeholders of an answer for requests that continue it."""
        if not placeholders.known:
            return
        # The first id is that of the answer; others may be those of earlier answers.
        prefixes = tuple(kind.prefix for kind in _stored_answers())
        ids = [id for id in _ANSWER_ID.findall(response[:_NEAR]) if id.startswith(prefixes)][:1]
        if '"conversation"' in request:
            ids += _continued_ids(encode_text(request))
        _put(self._kept, ids, placeholders)


_NEAR = 65536
_MOST_KEPT = 4096
_MOST_PATTERNS = 16
_ANSWER_ID = re.compile(r'"id"\s*:\s*"([\w-]+)"')


def _put(kept: dict[str, Placeholders], ids: Iterable[str], placeholders: Placeholders) -> None:
    """Keeps placeholders by ids; the oldest are forgotten first."""
    for id in ids:
        kept[id] = placeholders
    while len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


def _conversation_of(plain: Captured) -> tuple[str, bool]:
    """A digest of the first message of a request, "" for no request for a model; and whether there
    are turns of the model after it."""
    request = model_request(plain)
    if request is None:
        return "", False
    first = next((message.text for message in request.messages if message.role == "user"), "")
    digest = blake2b(first.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    goes_on = any(message.role == "assistant" for message in request.messages)
    return f"{request.api} {digest}", goes_on


def _stored_answers() -> list[StoredAnswers]:
    return [kind for protocol in PROTOCOLS.values() if (kind := protocol.stored) is not None]


def _continued_ids(body: bytes) -> list[str]:
    """The ids of the answer, and of the conversation, that a request continues."""
    request = json_object(body) or {}
    conversation = request.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    ids = (*(request.get(kind.field) for kind in _stored_answers()), conversation)
    return [id for id in ids if isinstance(id, str)]


# Bodies


def _without_machine(captured: Captured) -> Captured:
    """An exchange of a coding agent with placeholders for its machine."""
    plain = captured.plain().plain_request()
    request = model_request(plain)
    if request is None or request.world is None:
        return captured
    world = request.world
    bodies = body_of(plain.request_body), body_of(plain.body)
    sent, got = request_edits(bodies[0].text, world), answer_edits(bodies[1].text, world)
    if sent:
        captured = _with_request(captured, plain, bodies[0].edit(sent)[0])
    if got:
        captured = _with_response(captured, plain, *bodies[1].edit(got))
    return captured


def _with_request(captured: Captured, plain: Captured, body: bytes) -> Captured:
    headers = with_length(plain.request_headers, len(body))
    return replace(captured, request_headers=headers, request_body=body)


def _with_response(
    captured: Captured, plain: Captured, body: bytes, moved: Sequence[Moved]
) -> Captured:
    if not captured.cut:
        headers = with_length(plain.headers, len(body))
    elif plain.headers == captured.headers:
        headers = with_length(plain.headers, None, len(body) - len(plain.body))
    else:
        headers = with_length(plain.headers, None)
    return replace(captured, headers=headers, chunks=recut(plain.chunks, moved, body))


def _text_bytes(message: SocketMessage) -> bytes:
    return encode_text(message.reason) if message.kind == "close" else message.data


def _with_data(message: SocketMessage, data: bytes) -> SocketMessage:
    """A message with other data; it is cut into frames where it was before."""
    if message.kind == "close":
        return replace(message, reason=decode_bytes(data))
    change = len(data) - len(message.data)
    if not change or not message.fragments:
        return replace(message, data=data)
    *first, last = message.fragments
    while first and last + change < 0:
        last += first.pop()
    return replace(message, data=data, fragments=(*first, last + change))


# Keys of requests

RequestKey = tuple[str, tuple[str, ...], Ignored, str]
"""The digest of a request, the places of its values that had secrets, what else the digest leaves
out, and the tags of these values."""

Hidden = tuple[tuple[str, str], ...]
"""The tags of hidden values, each after its place (`mockllm.play.matching.hidden`)."""


def key_of_request(
    request: Request, hidden: Hidden = (), ignore: Ignored = ()
) -> RequestKey | None:
    """The key of a request for an answer of a model; None if too many strings had secrets."""
    redacted = _pointers(request.body)
    if len(redacted) > MAX_STRINGS:
        return None
    return request_digest(request, redacted, ignore), redacted, ignore, _tags(redacted, hidden)


def key_of_route(exchange: Captured, ignore: Ignored = ()) -> RequestKey | None:
    """The key of a request that calls no model; None if too many strings had secrets."""
    path, _ = route_template(exchange)
    query, kind = urlsplit(exchange.url).query, _content_type(exchange)
    redacted = _hidden_places(exchange)
    if len(redacted) > MAX_STRINGS:
        return None
    digest = route_digest(
        exchange.method, path, query, kind, exchange.request_body, redacted, ignore
    )
    return digest, redacted, ignore, _tags(redacted, exchange.hidden)


def _tags(places: tuple[str, ...], hidden: Hidden) -> str:
    """The tags of the values at some places; "" where none is known."""
    known = dict(hidden)
    tags = "".join(known.get(place, "--") for place in places)
    return tags if tags.strip("-") else ""


def _hidden_values(before: Captured, after: Captured) -> Hidden:
    """The tags of the values of a request that are hidden now, and of those that were before.

    Args:
        before, after: the exchange with its secrets, and without, with plain bodies.
    """
    if before.url == after.url and before.request_body == after.request_body:
        return before.hidden
    path, _ = route_template(after)
    route = RouteSpec(after.method, path)
    old_at, new_at = (
        hidden_value_at(route, RouteRequest.of_exchange(side)) for side in (before, after)
    )
    tags = {
        place: hidden_tag(old)
        for place in _hidden_places(after)
        if (old := old_at(place)) is not None and old != new_at(place)
    }
    return tuple((tags | dict(before.hidden)).items())


def _hidden_places(exchange: Captured) -> tuple[str, ...]:
    """The places of a request whose values had secrets."""
    _, segments = route_template(exchange)
    parameters = values_of_parameters(urlsplit(exchange.url).query)
    hidden = (place for place, value in parameters.items() if _had_secret(value))
    return (*segments, *hidden, *_pointers(_searched_body(exchange)))


def _searched_body(exchange: Captured) -> Any:
    """The body of a request as a JSON value with the contents of its files; a body of another kind
    as one text."""
    body = exchange.request_body
    fields = form_fields(_content_type(exchange), body, lambda part: body_text(part.data))
    value = json_value(body) if fields is None else fields
    return body_text(body) if value is None else value


def route_template(exchange: Captured) -> tuple[str, tuple[str, ...]]:
    """The path of an exchange as a route has it, with `{redacted}`, `{redacted2}`, ... for the
    segments that had a secret, and these names."""
    names: list[str] = []
    segments: list[str] = []
    for segment in route_path(exchange).split("/"):
        if _had_secret(unquote(segment)):
            names.append(_segment_name(len(names)))
            segments.append(names[-1])
        else:
            segments.append(segment)
    return "/".join(segments), tuple(names)


def _segment_name(number: int) -> str:
    return f"{{{HIDDEN_SEGMENT}{number + 1 if number else ''}}}"


def route_path(exchange: Captured) -> str:
    """The path of an exchange, in which `*` would stand for any text."""
    return normal_path(urlsplit(exchange.url).path or "/").replace("*", "%2A")


def route_body(exchange: Captured) -> Any:
    """The body of a request as a JSON value; None for none, or for one of another kind."""
    fields = form_fields(_content_type(exchange), exchange.request_body)
    if fields is not None:
        return fields
    return json_value(exchange.request_body)


def _content_type(exchange: Captured) -> str:
    headers = exchange.request_headers
    return next((value for name, value in headers if name.lower() == "content-type"), "")


def _pointers(body: Any) -> tuple[str, ...]:
    return redacted_strings(body, _had_secret)


def _had_secret(text: str) -> bool:
    return wildcards(text) is not None
