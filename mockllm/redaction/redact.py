"""Takes the secrets out of an exchange before anything of it is stored."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import UsageError
from mockllm.framing.content_coding import decompressed
from mockllm.redaction.credentials import Headers, clean_url, credentials, resized
from mockllm.redaction.json_paths import compiled
from mockllm.redaction.placeholders import Names, is_placeholder, wildcards
from mockllm.redaction.replacing import Edit, edited, edits, recut
from mockllm.redaction.text import Finder, Found
from mockllm.tapes.captured import Captured

__all__ = ["Hiding", "Redactor", "Rules", "rules_from"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is a secret besides what is known to be one.

    Args:
        patterns: regular expressions; where one has a group, only its first group is secret.
        json_paths: places in JSON bodies, such as `$.user` or `$..customer.name`.
        headers: names, in lower case, of further headers that may be kept.
    """

    patterns: tuple[str, ...] = ()
    json_paths: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


_USUAL = Rules()
_OPTIONS = frozenset(("patterns", "json_paths", "headers"))


def rules_from(
    file: Path | None = None, patterns: Iterable[str] = (), paths: Iterable[str] = ()
) -> Rules:
    """The rules of `[redact]` in a `mockllm.toml`, if given, with those of options added.

    Raises:
        UsageError: the file, a pattern or a path cannot be read.
    """
    table = _table(file) if file is not None else {}
    unknown = sorted(table.keys() - _OPTIONS)
    if unknown:
        known = ", ".join(sorted(_OPTIONS))
        raise UsageError(f"{file}: [redact] has {unknown[0]!r}; what it may have is {known}")
    rules = Rules(
        (*_strings(file, table, "patterns"), *patterns),
        (*_strings(file, table, "json_paths"), *paths),
        tuple(name.lower() for name in _strings(file, table, "headers")),
    )
    _compiled(rules.patterns)
    compiled(rules.json_paths)
    return rules


def _table(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("redact", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} must be a TOML file: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{file}: `redact` must be a table, [redact]")
    return table


def _strings(file: Path | None, table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UsageError(f"{file}: [redact] {key} must be a list of strings, got {value!r}")
    return value


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    made = []
    for pattern in patterns:
        try:
            made.append(re.compile(pattern))
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{pattern!r} is no regular expression of Python: {error}") from error
        if made[-1].fullmatch("") is not None:
            raise UsageError(f"{pattern!r} matches the empty text too; a secret has a character")
    return tuple(made)


class Redactor:
    """Replaces secrets by placeholders; one for all the exchanges of a run.

    The same secret has the same placeholder in all of an exchange, and in a request that
    continues an answer which the service keeps (`previous_response_id`) the one that it had
    there. Requests that bring their history along number alike by themselves.

    Raises:
        UsageError: a pattern or a path cannot be read.
    """

    def __init__(self, rules: Rules = _USUAL) -> None:
        self._patterns = _compiled(rules.patterns)
        self._paths = compiled(rules.json_paths)
        self._headers = Headers(rules.headers)
        self._kept: dict[str, Names] = {}

    def captured(self, captured: Captured, names: Names | None = None) -> Captured:
        """The exchange without its secrets, with as many chunks, at the same times.

        Args:
            names: the placeholders so far, where it belongs together with others.

        Where a body has no secret its bytes stay as they are, compressed if they were. Where it
        has one it is no longer compressed, and `content-length` follows.

        Raises:
            WireError: a body is compressed in a way that is not known here, so that nobody can
                say what is in it.
        """
        plain = _plain_request(captured.plain())
        names = self._names(plain) if names is None else names
        request, answer = _decoded(plain.request_body), _decoded(plain.body)
        known = {*names.known, *credentials(captured)}
        finder = self._finder((captured.url, request, answer), known)
        hide = Hiding(finder, names)
        url = clean_url(captured.url, hide.name, hide.text)
        asked, changes = edits(finder.find(request), names), edits(finder.find(answer), names)
        clean = captured if not asked else _with_request(captured, plain, request, asked)
        clean = clean if not changes else _with_answer(clean, plain, answer, changes)
        self._keep(request, answer, names)
        return replace(
            clean,
            url=url,
            request_headers=self._headers.asked(clean.request_headers, hide.text),
            headers=self._headers.answered(clean.headers, hide.text),
        )

    def text(self, text: str) -> str:
        """A text without its secrets; one that is a JSON document or an event stream stays one."""
        return self._hiding(text).text(text)

    def json(self, value: Any) -> Any:
        """A JSON value without its secrets."""
        written = json.dumps(value, ensure_ascii=False)
        clean = self.text(written)
        return value if clean == written else json.loads(clean)

    def headers(
        self, pairs: Iterable[tuple[str, str]], *, reply: bool = False
    ) -> tuple[tuple[str, str], ...]:
        """Headers without secrets: of a request those that may be kept, of a reply all, but the
        others with the value `REDACTED`."""
        pairs = tuple(pairs)
        hide = self._hiding("\n".join(value for _, value in pairs)).text
        return self._headers.answered(pairs, hide) if reply else self._headers.asked(pairs, hide)

    def url(self, url: str) -> str:
        """A URL without its secrets: of its query only values that are known to be harmless are
        kept."""
        hiding = self._hiding(url)
        return clean_url(url, hiding.name, hiding.text)

    def pattern(self, text: str) -> str | None:
        """A regular expression that finds the text as it was and as it is redacted; None where
        nothing in it is, or would be, redacted.

        It is not anchored: `search` finds it anywhere.
        """
        return wildcards(self.text(text))

    def found(self, text: str) -> tuple[Found, ...]:
        """The secrets in a text, the first of overlapping ones first."""
        return self._finder((text,), ()).find(text)

    def hiding(self, text: str, names: Names) -> Hiding:
        """What takes the secrets out of a text that belongs together with others."""
        return Hiding(self._finder((text,), names.known), names)

    def _hiding(self, text: str) -> Hiding:
        return self.hiding(text, Names((text,)))

    def _finder(self, texts: Iterable[str], known: Iterable[str]) -> Finder:
        """What finds in some texts also the secrets that only another of them tells as such."""
        known = set(known)
        finder = Finder(self._patterns, self._paths, known)
        found = (one for text in texts for one in finder.find(text))
        more = {secret for one in found for secret in one.secrets()}
        return finder if more <= known else finder.knowing(known | more)

    # What a service keeps of a conversation

    def _names(self, plain: Captured) -> Names:
        body = plain.request_body
        if self._kept and (b"previous_response_id" in body or b'"conversation"' in body):
            for id in _continued(body):
                if id in self._kept:
                    return self._kept[id].copy()
        return Names()

    def _keep(self, request: str, answer: str, names: Names) -> None:
        if not names.known:
            return
        ids = [found[1] for found in _ANSWER_ID.finditer(answer[:_NEAR])][:1]
        if '"conversation"' in request:
            ids += _continued(request.encode("utf-8", "surrogateescape"))
        for id in ids:
            self._kept[id] = names
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]


_NEAR = 65536
_MOST_KEPT = 4096
_ANSWER_ID = re.compile(r'"id"\s*:\s*"(resp_[\w-]+)"')


def _continued(body: bytes) -> list[str]:
    """The answer, and the conversation, that a request goes on with."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(asked, dict):
        return []
    conversation = asked.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    ids = (asked.get("previous_response_id"), conversation)
    return [id for id in ids if isinstance(id, str)]


@dataclass(frozen=True, slots=True)
class Hiding:
    """What finds secrets, and what names them."""

    finder: Finder
    names: Names

    def text(self, text: str) -> str:
        """A text without its secrets."""
        changes = edits(self.finder.find(text), self.names)
        return edited(text, changes) if changes else text

    def name(self, secret: str) -> str:
        """The placeholder of a value."""
        return secret if is_placeholder(secret) else self.names.name(secret)


def _decoded(data: bytes) -> str:
    """Bytes as text; those that are no UTF-8 can be told, and written again."""
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_PACKED = "content-encoding"


def _plain_request(captured: Captured) -> Captured:
    """The same with the request's body decompressed."""
    headers = captured.request_headers
    packing = next((value.strip().lower() for name, value in headers if name == _PACKED), "")
    if packing in ("", "identity"):
        return captured
    pieces = decompressed((TimedBytes(0, captured.request_body),), packing, captured.source)
    return replace(
        captured,
        request_headers=tuple(pair for pair in headers if pair[0] != _PACKED),
        request_body=b"".join(piece.data for piece in pieces),
    )


def _with_request(
    captured: Captured, plain: Captured, text: str, changes: Sequence[Edit]
) -> Captured:
    body = _encoded(edited(text, changes))
    headers = resized(plain.request_headers, len(body))
    return replace(captured, request_headers=headers, request_body=body)


def _with_answer(
    captured: Captured, plain: Captured, text: str, changes: Sequence[Edit]
) -> Captured:
    body = _encoded(edited(text, changes))
    if not captured.cut:
        headers = resized(plain.headers, len(body))
    elif plain.headers == captured.headers:
        headers = resized(plain.headers, None, len(body) - len(plain.body))
    else:
        headers = resized(plain.headers, None)
    return replace(captured, headers=headers, chunks=recut(plain.chunks, text, changes, body))
