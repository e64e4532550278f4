"""The environment variables for clients of AG-UI agents: the protocol defines none."""

from __future__ import annotations

from mockllm.protocols.records import Environment

ENVIRONMENT = Environment()
