"""The journal as JSON text, entry by entry: the whole of it, or a page of one session's.

Journals hold hundreds of megabytes. So no list of all entries is made, and no text of all of them:
what is made at a time is one entry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.errors import RequestError
from mockllm.protocols.base import dumps
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.session import Session
from mockllm.server.http.request_reading import whole_number


@record
class JournalPage:
    """What is requested of a journal.

    Args:
        after: the number of the entry before the first one.
        limit: the most entries; None: all.
        paged: whether the request is for a page: only its answer says what comes next.
    """

    after: int = 0
    limit: int | None = None
    paged: bool = False


def read_page(query: Mapping[str, str]) -> JournalPage:
    """The page that a query names; the whole journal without `after` and `limit`.

    Raises:
        RequestError: one of them is wrong, or there is no `session`, within which entries are
            numbered.
    """
    if "after" not in query and "limit" not in query:
        return JournalPage()
    if "session" not in query:
        raise RequestError(
            "after and limit are for the journal of one session, which numbers its entries. Add "
            "session=default, or the name of another one.",
            param="session",
        )
    limit = whole_number(query, "limit", least=1) if "limit" in query else None
    return JournalPage(whole_number(query, "after"), limit, paged=True)


async def journal_parts(sessions: Iterable[Session], page: JournalPage) -> AsyncIterator[bytes]:
    """The JSON object of a journal or a page, in parts that are an entry each at most.

    The journals may change meanwhile: an entry that leaves its journal before it is written is
    left out, and counted in `dropped`.
    """
    yield b'{"exchanges":['
    separator = b""
    dropped = missed = 0
    gaps: dict[str, None] = {}
    last, more = page.after, False
    for session in sessions:
        entries = tuple(session.journal)
        first = entries[0].number if entries else session.count + 1
        missed = max(0, first - 1 - page.after)
        if not entries:
            last = max(last, session.count)
        for entry in _of_page(entries, page):
            if entry.dropped:
                missed += 1
                continue
            yield separator + json_bytes(dumps(entry.as_json()))
            separator = b","
            last = entry.number
        more = session.count > last
        dropped += session.dropped
        gaps |= dict.fromkeys(session.gaps)
    end: dict[str, Any] = {"dropped": dropped}
    if gaps:
        end["gaps"] = list(gaps)
    yield b"]," + dumps(end if not page.paged else end | _next(last, missed, more)).encode()[1:]


def _of_page(entries: tuple[Exchange, ...], page: JournalPage) -> Iterable[Exchange]:
    if not page.paged or not entries:
        return entries
    # The numbers of a journal have no gaps.
    start = max(0, page.after + 1 - entries[0].number)
    return entries[start:] if page.limit is None else entries[start : start + page.limit]


def _next(last: int, missed: int, more: bool) -> dict[str, int | bool]:
    return {"missed": missed, "next": last, "more": more}
