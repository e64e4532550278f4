"""OpenAI Realtime: voice and text over a WebSocket.

https://platform.openai.com/docs/guides/realtime-websocket

A client's messages change a session and its items; `response.create`, or the end of the user's
speech, asks for an answer. `conversation` reads them, and makes the body of a request from them
that only this package knows: the session, the items, and the fields of the response (`request`).
`encoder` writes the events of an answer and `decoder` reads them; `objects` has what both share,
`sound` the audio, `session` the settings, `errors` what the service refuses, `routes` the paths
that call no model, `dialects` the names of the beta, which Azure has kept.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, routes_below
from mockllm.wire.protocols.openai_environment import ENVIRONMENT, HOSTS

API = "realtime"

_BASES = ("/v1", "", "/openai/v1", "/openai", "/voice-live")

ADDRESS = Address(
    name=API,
    title="OpenAI Realtime",
    package=__name__,
    routes=tuple(routes_below(_BASES, Route("GET", "/realtime", "generate"))),
    paths=(re.compile(r"/realtime$"),),
    base_path="/v1",
    env=ENVIRONMENT,
    hosts=HOSTS,
    provider="openai",
)
