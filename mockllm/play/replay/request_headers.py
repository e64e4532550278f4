"""The headers of a request that change its answer: `x-mockllm-quirk` and `x-mockllm-fault`."""

from __future__ import annotations

from mockllm.core.errors import RequestError, UsageError
from mockllm.play.replay.loading import quirk_problem
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.reading.faults import OF_SERVERS, parse_faults

QUIRK_HEADER = "x-mockllm-quirk"
"""The request header with the names of quirks for the answer, separated by commas."""

FAULT_HEADER = "x-mockllm-fault"
"""The request header with the faults of the answer, as `mockllm serve --fault` has them."""


def requested_quirks(header: str) -> tuple[str, ...]:
    """The quirks that a header names."""
    names = tuple(name.strip() for name in header.split(",") if name.strip())
    for problem in filter(None, map(quirk_problem, names)):
        raise RequestError(f"{QUIRK_HEADER}: {problem}", code="unknown_quirk")
    return names


def requested_faults(header: str) -> tuple[Fault, ...]:
    """The faults that a header names."""
    try:
        faults = parse_faults(header)
    except UsageError as error:
        raise RequestError(f"{FAULT_HEADER}: {error}", code="unknown_fault") from None
    for fault in faults:
        if fault.name in OF_SERVERS:
            raise RequestError(
                f"{FAULT_HEADER}: {fault.name} is a fault of a server's connections; start it "
                f"with `mockllm serve --fault {fault}`",
                code="unknown_fault",
            )
    return faults
