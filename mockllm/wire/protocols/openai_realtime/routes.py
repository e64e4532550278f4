"""The paths beside the WebSocket: keys for browsers, and calls over WebRTC and SIP.

https://platform.openai.com/docs/api-reference/realtime-sessions and
https://platform.openai.com/docs/api-reference/realtime-calls
"""

from __future__ import annotations

import re

from mockllm.core.http import Target
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import created_at, dumps
from mockllm.wire.protocols.openai_common import missing
from mockllm.wire.protocols.openai_realtime.session import new_session, update
from mockllm.wire.protocols.records import FallbackBody, FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import mapping, string, whole

_USUAL = 600
"""After how many seconds a key expires."""


def _client_secret(body: Fields, _target: Target) -> Json:
    """A key, and the session that it opens."""
    seed = dumps(body)
    given = mapping(body.get("session"))
    session = new_session(string(given.get("model")) or "gpt-realtime", seed)
    if given:
        session = update(session, given)
    seconds = whole(mapping(body.get("expires_after")).get("seconds")) or _USUAL
    key = "ek_" + derive(seed, "key", length=32, hex=True)
    return {"value": key, "expires_at": created_at(seed) + seconds, "session": session}


_ANSWER = (
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 127.0.0.1\r\na=mid:0\r\na=inactive\r\n"
    "a=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n"
)
"""A description (RFC 8866) without media: nothing here speaks WebRTC."""


def _call(body: Fields, target: Target) -> FallbackBody:
    """The answer to a call, whose id the `location` has: a WebSocket with `call_id` joins it."""
    offer = string(body.get("sdp"))
    if not offer:
        raise missing("sdp")
    id = "rtc_" + derive(offer, "call", length=21)
    headers = (("location", f"/v1/realtime/calls/{id}"),)
    return FallbackBody("application/sdp", (_ANSWER.encode(),), status=201, headers=headers)


def _empty(_body: Fields, _target: Target) -> FallbackBody:
    return FallbackBody("application/json", ())


FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/realtime/client_secrets$"), _client_secret),
    FallbackRoute(re.compile(r"/realtime/calls$"), _call, takes_form=True, text_field="sdp"),
    FallbackRoute(
        re.compile(r"/realtime/calls/(?P<call>[^/]+)/(?:accept|reject|refer|hangup)$"),
        _empty,
        text_field="body",
    ),
)
