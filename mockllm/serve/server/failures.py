"""The errors for requests on which mockllm itself fails; answer, log and verdict have them."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from mockllm.core.errors import RequestError

_ROOT = Path(__file__).resolve().parents[2]

_DEEP = 100
"""Bodies with more levels may exceed Python's recursion limit; services refuse most of them, too:
Protocol Buffers reads 100 levels of JSON, Rust's serde_json 128."""


def failure(error: BaseException) -> RequestError:
    """The error for a request that mockllm could not answer because of a mistake of its own."""
    return RequestError(
        f"mockllm failed on this request: {_description(error)}. This is a mistake in mockllm, not "
        "in the client; please report it with the request.",
        status=500,
        code="mockllm_failed",
    )


def too_deep(error: BaseException, body: bytes) -> RequestError | None:
    """The error for a request whose body has so many levels that Python cannot walk through them;
    None for any other error."""
    if not isinstance(error, RecursionError) or _levels(body) <= _DEEP:
        return None
    return RequestError(
        f"We could not parse the JSON body of your request (it is nested too deeply: more than "
        f"{_DEEP} levels).",
        code="invalid_json",
    )


def _levels(body: bytes) -> int:
    """The most brackets that are open at once; those in strings count, too."""
    steps = ((byte in b"[{") - (byte in b"]}") for byte in body)
    return max(accumulate(steps, initial=0))


def _description(error: BaseException) -> str:
    """Type and message of an error, and where in mockllm it was raised."""
    where, at = "", error.__traceback__
    while at is not None:
        file = Path(at.tb_frame.f_code.co_filename)
        if file.is_relative_to(_ROOT):
            where = f" at mockllm/{file.relative_to(_ROOT).as_posix()}:{at.tb_lineno}"
        at = at.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{where}: {text[:200]}"
