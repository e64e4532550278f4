"""Requests that agents make beside the conversation of their user: titles, summaries, telemetry.

`auxiliary.yaml` says which these are, and what mockllm answers where no scenario names them. A
summary that mockllm wrote has a mark: what comes after it goes on at the turn of the conversation.
"""

from __future__ import annotations

import re
from functools import cache

from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.play.tables import read_table

_MARK = re.compile(r"\[mockllm turn ([0-9a-f]{40})\]")


@record
class AuxiliaryRequest:
    """A request for an answer of a model, beside the conversation; "" is no condition.

    Args:
        agent: its name.
        kind: for people.
        reply: the answer; `{summary}` in it is filled in.
        system: a text in the system prompt.
        user: a text in the last message, which is the user's.
        whole: whether that text is all of the message.
        max_tokens: how many tokens the answer may have.
        trait: one of `Request.traits`.
        hosted: the item of the service whose fields the reply is, in place of a text.
        after: what the agent says in the model's name after the summary.
    """

    agent: str
    kind: str
    reply: str
    system: str = ""
    user: str = ""
    whole: bool = False
    max_tokens: int | None = None
    trait: str = ""
    hosted: str = ""
    after: str = ""
    seen: str = ""
    in_code: str = ""

    def holds(self, request: Request) -> bool:
        """Whether a request is one of these."""
        if self.max_tokens is not None and request.body.get("max_tokens") != self.max_tokens:
            return False
        if self.system not in request.system or (self.trait and self.trait not in request.traits):
            return False
        if not self.user:
            return True
        last = request.messages[-1] if request.messages else None
        if last is None or last.role not in ("user", "system"):
            return False
        text = request.last_user.text
        return text == self.user if self.whole else self.user in text

    def text(self, token: str) -> str:
        """The answer.

        Args:
            token: of the last answer that a summary is about; "" where there is none.
        """
        summary = "mockllm wrote this summary: it names the turn after which the conversation goes"
        summary += f" on. [mockllm turn {token}]" if token else " on, and there was none yet."
        return self.reply.format(summary=summary)


@record
class AuxiliaryRoute:
    """A route that calls no model, and the status of its answer, which has no body."""

    agent: str
    method: str
    path: re.Pattern[str]
    host: str
    status: int


def auxiliary_request(request: Request) -> AuxiliaryRequest | None:
    """The request of an agent as one beside the conversation; None for one that belongs to it."""
    if not request.agent:
        return None
    rows = (row for row in _requests() if row.agent == request.agent)
    return next((row for row in rows if row.holds(request)), None)


def auxiliary_route(method: str, path: str, host: str) -> AuxiliaryRoute | None:
    """The route as one beside the conversation; None for any other."""
    for row in _routes():
        if row.method == method and row.host in ("", host) and row.path.fullmatch(path):
            return row
    return None


def find_summary(request: Request) -> tuple[str, int] | None:
    """The token in the latest summary that mockllm wrote, and the index of the first message after
    it; None where the history has none, or no agent's."""
    messages = request.messages if request.agent else ()
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "tool":  # it may have read what another conversation said
            continue
        found = _MARK.search(messages[index].ref or messages[index].text)
        if found is not None:
            says = {row.after for row in _requests() if row.agent == request.agent and row.after}
            after = index + 1
            if after < len(messages) and messages[after].role == "assistant":
                after += messages[after].text in says
            return found[1], after
    return None


_TABLE = "auxiliary.yaml"


@cache
def _requests() -> tuple[AuxiliaryRequest, ...]:
    rows = read_table(_TABLE, __package__)["requests"]
    return tuple(AuxiliaryRequest(**row) for row in rows)


@cache
def _routes() -> tuple[AuxiliaryRoute, ...]:
    rows = []
    for row in read_table(_TABLE, __package__)["routes"]:
        method, path = row["route"].split()
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
        host = row.get("host", "")
        rows.append(AuxiliaryRoute(row["agent"], method, re.compile(pattern), host, row["status"]))
    return tuple(rows)
