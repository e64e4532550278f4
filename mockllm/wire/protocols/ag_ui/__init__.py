"""AG-UI 1.0, the protocol between an agent and its user interface.

https://docs.ag-ui.com

`request` (with `messages`) parses the input of a run; `encoder` writes its stream and `decoder`
reads it; `objects` has what both share, `errors` all errors; `created` makes ids of threads and
runs; `protocol` is the whole. AG-UI always streams: the body form is mockllm's own.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route

API = "agui"

CREATES = ("thread", "run")
"""The parameters of a path whose values the server makes."""

ADDRESS = Address(
    name=API,
    title="AG-UI",
    package=__name__,
    routes=(
        Route("POST", "/agui", "generate"),
        Route("POST", "/agui/{scenario}", "generate"),
    ),
    paths=(re.compile(r"/agui(?:/(?P<scenario>[^/]+))?$"),),
    base_path="/agui",
    any_path=True,
    creates=CREATES,
    task="invoke_agent",
)
