"""Requests for control routes: who sends them, preflights, and answers with JSON bodies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mockllm.errors import RequestError
from mockllm.replay.answer import HttpAnswer, json_answer
from mockllm.replay.player import Player
from mockllm.server.control import Control
from mockllm.server.control_access import ControlAccess

__all__ = ["ControlAnswers"]


class ControlAnswers:
    """Answers the requests for control routes that `access` lets in."""

    def __init__(self, control: Control, access: ControlAccess) -> None:
        self._control = control
        self._access = access

    async def answer(
        self,
        player: Player,
        method: str,
        target: str,
        headers: Mapping[str, str],
        session: str | None,
        read_body: Callable[[], Awaitable[bytes]],
    ) -> tuple[HttpAnswer, bool]:
        """The answer, and whether the connection has to be closed after it.

        Args:
            player, headers, session: as of `Control.handle`.
            target: path and query, without the session prefix.
        """
        own = {"cache-control": "no-store", **self._access.response_headers(headers)}
        try:
            body = await read_body()
            self._access.check(headers)
            preflight = self._access.preflight(headers) if method == "OPTIONS" else None
            if preflight is not None:
                return json_answer(200, {}, preflight), False
            status, value = await self._control.handle(
                player, method, target, headers, body, session
            )
        except RequestError as error:
            return json_answer(error.status, _error(error), own), error.status == 413
        return json_answer(status, value, own), False


def _error(error: RequestError) -> dict[str, Any]:
    problems = getattr(error, "problems", None)
    listed = {} if problems is None else {"problems": problems}
    return {"error": {"message": error.message, **listed}}
