"""The stages of a request's way that only some servers have: quota, slot, shared state.

Each is called with the next one, and answers in its place, or calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.errors import RequestError
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.sessions.exchange import Exchange, Played, Sent
from mockllm.play.replay.sessions.shared_session import SharedSession, StateAwayError
from mockllm.serve.server.answers import refused_at
from mockllm.serve.server.exchanges import ExchangeLog
from mockllm.serve.server.request_context import Chosen, RequestContext
from mockllm.serve.server.sources import Sources

if TYPE_CHECKING:
    from mockllm.serve.server.limits.capacity import Slots
    from mockllm.serve.server.limits.quotas import ServerQuotas
    from mockllm.serve.server.state.shared_sessions import SharedSessions

Respond = Callable[[RequestContext], Awaitable[web.StreamResponse]]
"""Answers a request in full."""

Choose = Callable[[RequestContext], Awaitable[Chosen]]
"""Finds what answers a request."""

Play = Callable[[RequestContext, ApiCall], Awaitable[Answered]]
"""Plays the answer to a request of an API."""

_LEFT = "the client left while the request waited for its slot (--queue)"


async def hold(
    shared: SharedSessions, respond: Respond, context: RequestContext
) -> web.StreamResponse:
    """Lets the store know of a request until it is recorded."""
    session = context.session
    assert isinstance(session, SharedSession)
    await shared.state.hold(session)
    try:
        return await respond(context)
    finally:
        shared.state.release(session)


async def share(
    shared: SharedSessions, sources: Sources, choose: Choose, context: RequestContext
) -> Chosen:
    """Answers from a session as other processes left it, and leaves it to them."""
    session = context.session
    assert isinstance(session, SharedSession)
    try:
        await shared.refresh(session.name)
        chosen = await choose(context)
        await shared.state.keep(session)
    except RequestError as error:
        session.begin()
        context.target = None
        chosen = sources.refusal(context.arrival.path, error)
        if isinstance(error, StateAwayError):
            counted = error.may_count or session.is_counted
            played = replace(chosen.played, outcome="error", cause="state store", counted=counted)
            chosen = replace(chosen, played=played)
            shared.state.failed()
    return chosen


async def meter(
    quotas: ServerQuotas, play: Play, context: RequestContext, call: ApiCall
) -> Answered:
    """Takes what a request needs of the quotas, or refuses it."""
    metered = context.metered = await quotas.meter(call)
    return await play(context, call) if metered.granted else refused_at(call, metered.refusal())


async def settle(
    quotas: ServerQuotas, play: Play, context: RequestContext, call: ApiCall
) -> Answered:
    """Takes what an answer needs of the quotas, and says in it what is left."""
    answered = await play(context, call)
    assert context.metered is not None
    return replace(answered, answer=await quotas.settle(context.metered, answered.answer))


async def take_slot(
    slots: Slots, log: ExchangeLog, play: Play, context: RequestContext, call: ApiCall
) -> Answered:
    """Takes a slot, perhaps after a wait, or refuses a request."""
    slot = context.slot = slots.enter()
    try:
        why = slots.full if slot is None else await slot.wait(context.arrival.request)
    except asyncio.CancelledError:
        if slot is not None and not slot.taken:
            arrival = context.arrival
            received = arrival.received_request(context.target)
            played = Played("error", cause="capacity", problems=(_LEFT,), api=context.api)
            sent = Sent(arrival.clock, client_gone=True)
            exchange = Exchange(received, played, sent, in_use=True)
            log.begin(context.session, exchange)
            log.end(exchange)
        raise
    return refused_at(call, slots.refusal(call.protocol, why)) if why else await play(context, call)
