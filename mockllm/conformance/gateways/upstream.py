"""The service behind a gateway: a server in a thread, which knows each case by the nonce in it."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

NONCE = re.compile(rb"gw-[0-9a-f]{16}")
"""How a case is named in the text of its user. It is the name of the session, too; `default` has
the requests that belong to no case, such as probes."""


def gateway_upstream(port: int = 0) -> AbstractContextManager[ServerThread]:
    """Listens while the `with` block lasts.

    Args:
        port: 0 picks a free one.
    """
    return ServerThread([], ServerOptions(port=port, grace=0, session_in_body=NONCE))
