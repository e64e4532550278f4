"""The Echo API: `POST /echo/v2/speak`. No service has it; its shapes are like no other API's.

`acts` has what both sides share; `errors` has the errors, headers and lists around answers.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route
from mockllm.wire.protocols.records import Environment

ADDRESS = Address(
    name="echo",
    title="Echo",
    package=__name__,
    routes=(
        Route("POST", "/echo/v2/speak", "generate"),
        Route("GET", "/echo/v2/voices", "models"),
    ),
    paths=(re.compile(r"/echo/v\d+/speak$"),),
    base_path="/echo",
    env=Environment(base_urls=(("ECHO_BASE_URL", ""),), keys=("ECHO_KEY",)),
)
