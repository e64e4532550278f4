"""`mockllm` with the Echo API: `python -m tests.sixth_protocol.program COMMAND ...`."""

from __future__ import annotations

from mockllm.cli import main
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.echo.protocol import PROTOCOL

if __name__ == "__main__":
    PROTOCOLS[PROTOCOL.name] = PROTOCOL
    main()
