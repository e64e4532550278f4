"""Takes the secrets out of an exchange while its answer arrives."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mockllm.core.timed_bytes import TimedBytes
from mockllm.framing.content_coding import Decompressor, decompressed
from mockllm.redaction.allowlist import clean_url, credentials_of
from mockllm.redaction.finder import Finder
from mockllm.redaction.placeholders import Placeholders, is_placeholder
from mockllm.redaction.replacing import Edit, edited, edits, recut, with_length
from mockllm.redaction.scanning import TextScan
from mockllm.tapes.captured import Captured

if TYPE_CHECKING:
    from mockllm.redaction.redact import Redactor

__all__ = ["IncrementalRedaction", "TextRedactor"]

_CODING = "content-encoding"
_SLICE = 1 << 16


@dataclass(frozen=True, slots=True)
class TextRedactor:
    """Replaces what its finder finds by placeholders."""

    finder: Finder
    placeholders: Placeholders

    def text(self, text: str) -> str:
        """A text without its secrets."""
        changes = edits(self.finder.find(text), self.placeholders)
        return edited(text, changes) if changes else text

    def placeholder(self, secret: str) -> str:
        """The placeholder of a value."""
        return secret if is_placeholder(secret) else self.placeholders.give(secret)


class IncrementalRedaction:
    """One exchange. Each chunk is searched when it is added, so that little is left to do when the
    answer is over. The result does not depend on where the chunks were cut.

    Args:
        redactor: what is secret.
        head: what is known of the exchange before the body of its answer. With its whole request
            the end takes less time.
        placeholders: those so far, where the exchange belongs together with others.

    Raises:
        WireError: a body is compressed in a way that is not known here.
    """

    def __init__(
        self, redactor: Redactor, head: Captured, placeholders: Placeholders | None = None
    ) -> None:
        self._redactor = redactor
        self._placeholders = placeholders
        self._head = head
        self._known, self._finder = self._known_of(head)
        self._scan = TextScan(self._finder)
        self._chunks: list[TimedBytes] = []
        self._plain: list[TimedBytes] = []
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        coding = head.header(_CODING).strip().lower()
        self._coding = None
        if coding not in ("", "identity"):
            self._coding = Decompressor(coding, head.source)

    def _known_of(self, exchange: Captured) -> tuple[tuple[str, ...], Finder]:
        """The secrets that request and headers show, and what finds them."""
        known = dict.fromkeys(credentials_of(exchange))
        finder = self._redactor.finder(known)
        request = _decoded(_plain_request(exchange).request_body)
        found = [one for text in (exchange.url, request) for one in finder.find(text)]
        every = known | dict.fromkeys(secret for one in found for secret in one.secrets())
        return tuple(every), finder if len(every) == len(known) else finder.knowing(every)

    @property
    def chunks(self) -> tuple[TimedBytes, ...]:
        """The chunks so far, as they were added."""
        return tuple(self._chunks)

    def add(self, chunk: TimedBytes) -> None:
        """Adds a chunk of the answer, and searches it.

        Raises:
            WireError: it is not compressed as the head says.
        """
        self._chunks.append(chunk)
        if self._coding is None:
            self._search(chunk.data)
            return
        data = self._coding.feed(chunk.data)
        if data:
            self._plain.append(TimedBytes(chunk.at, data))
            self._search(data)

    def _search(self, data: bytes) -> None:
        for at in range(0, len(data), _SLICE):
            self._scan.add(self._decode(data[at : at + _SLICE]))

    def finish(self, whole: Captured) -> Captured:
        """The exchange without its secrets, with as many chunks, at the same times.

        Where a body has no secret its bytes stay as they are, compressed if they were. Where it
        has one it is no longer compressed, and `content-length` changes with it.

        Args:
            whole: the exchange; its chunks are those that were added.

        Raises:
            WireError: a body is compressed in a way that is not known here, so that it cannot be
                searched.
        """
        whole = replace(whole, chunks=self.chunks)
        plain = self._decompressed(whole)
        self._scan.add(self._decode(b"", True))
        placeholders = self._placeholders
        if placeholders is None:
            placeholders = self._redactor.placeholders(plain)
        request, response = _decoded(plain.request_body), self._scan.finish()
        in_head = self._known if _same(whole, self._head) else self._known_of(whole)[0]
        known = dict.fromkeys((*placeholders.known, *in_head))
        known |= dict.fromkeys(secret for one in response for secret in one.secrets())
        finder = self._finder
        if tuple(known) != self._known:
            finder = finder.knowing(known)
            response = self._scan.found_by(finder)
        redactor = TextRedactor(finder, placeholders)
        # Placeholders are numbered in this order: URL, request, response, headers.
        url = clean_url(whole.url, redactor.placeholder, redactor.text)
        in_request = edits(finder.find(request), placeholders)
        in_response = edits(response, placeholders)
        clean = whole
        if in_request:
            clean = _with_request(clean, plain, request, in_request)
        if in_response:
            clean = _with_response(clean, plain, self._scan.text, in_response)
        self._redactor.keep(request, self._scan.text, placeholders)
        allowlist = self._redactor.allowlist
        return replace(
            clean,
            url=url,
            request_headers=allowlist.of_request(clean.request_headers, redactor.text),
            headers=allowlist.of_response(clean.headers, redactor.text),
            trailers=allowlist.of_trailers(clean.trailers, redactor.text),
            reason=None if clean.reason is None else redactor.text(clean.reason),
        )

    def _decompressed(self, whole: Captured) -> Captured:
        """The exchange with plain bodies."""
        whole = _plain_request(whole)
        if self._coding is None:
            return whole
        self._coding.close()
        headers = tuple(pair for pair in whole.headers if pair[0] != _CODING)
        return replace(whole, headers=headers, chunks=tuple(self._plain))


def _same(one: Captured, other: Captured) -> bool:
    """Whether two exchanges show the same secrets beside the body of the answer."""
    return (
        one.url == other.url
        and one.request_body == other.request_body
        and one.request_headers == other.request_headers
        and one.headers == other.headers
    )


def _decoded(data: bytes) -> str:
    """Bytes as text; those that are no UTF-8 become surrogates, which are encoded back."""
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _plain_request(captured: Captured) -> Captured:
    """The same with the request's body decompressed."""
    headers = captured.request_headers
    coding = next((value.strip().lower() for name, value in headers if name == _CODING), "")
    if coding in ("", "identity"):
        return captured
    chunks = decompressed((TimedBytes(0, captured.request_body),), coding, captured.source)
    return replace(
        captured,
        request_headers=tuple(pair for pair in headers if pair[0] != _CODING),
        request_body=b"".join(chunk.data for chunk in chunks),
    )


def _with_request(
    captured: Captured, plain: Captured, text: str, changes: Sequence[Edit]
) -> Captured:
    body = _encoded(edited(text, changes))
    headers = with_length(plain.request_headers, len(body))
    return replace(captured, request_headers=headers, request_body=body)


def _with_response(
    captured: Captured, plain: Captured, text: str, changes: Sequence[Edit]
) -> Captured:
    body = _encoded(edited(text, changes))
    if not captured.cut:
        headers = with_length(plain.headers, len(body))
    elif plain.headers == captured.headers:
        headers = with_length(plain.headers, None, len(body) - len(plain.body))
    else:
        headers = with_length(plain.headers, None)
    return replace(captured, headers=headers, chunks=recut(plain.chunks, text, changes, body))
