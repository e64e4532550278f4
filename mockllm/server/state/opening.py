"""The state store that an option names."""

from __future__ import annotations

from pathlib import Path

from mockllm.errors import UsageError
from mockllm.server.state.store import StateStore

__all__ = ["open_store"]

_REDIS = ("redis://", "rediss://", "valkey://", "valkeys://", "unix://")


def open_store(name: str) -> StateStore:
    """A store that is not open yet.

    Args:
        name: `redis://HOST:PORT/DATABASE`, `valkey://...`, or `sqlite:FILE`.

    Raises:
        UsageError: there is no such store, or its client is not installed.
    """
    if name.startswith("sqlite:") and name != "sqlite:":
        from mockllm.server.state.sqlite_store import SqliteStore

        return SqliteStore(Path(name.removeprefix("sqlite:")))
    if name.startswith(_REDIS):
        from mockllm.server.state.redis_store import RedisStore

        is_valkey = name.startswith("valkey")
        return RedisStore(name.replace("valkey", "redis", 1) if is_valkey else name)
    raise UsageError(
        f"--state {name.partition('://')[0]}: there is no such store; use "
        "redis://HOST:PORT/DATABASE (Valkey or Redis), or sqlite:FILE for processes of one machine"
    )
