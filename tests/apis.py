"""The APIs by what they have."""

from __future__ import annotations

from mockllm.wire.protocols import PROTOCOLS

CALLING = tuple(name for name, protocol in PROTOCOLS.items() if protocol.client.tool_fields)
"""Those with tools. The legacy completions have none."""

OVER_HTTP = PROTOCOLS.over_http
"""Those that answer over HTTP. The others have only WebSockets."""
