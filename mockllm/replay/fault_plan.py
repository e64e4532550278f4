"""Which answers of a server or a session have a fault: drawn from a seed, so that a run repeats."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.record import record
from mockllm.core.seeded import derive_int
from mockllm.errors import UsageError
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.reading.faults import OF_SERVERS, parse_faults

_PARTS = 1_000_000


@record
class FaultPlan:
    """The faults of a server or a session.

    Args:
        choices: one of them is drawn for an answer that has a fault; each may be several faults.
        rate: the share of the answers that have one.
        seed: of the draw; with it, the session and the number of the request decide.
        limit: how many connections a server has at the same time; None: any number.
        waits: whether connections beyond the limit wait; otherwise they are refused.
    """

    choices: tuple[tuple[Fault, ...], ...] = ()
    rate: float = 1.0
    seed: str = "0"
    limit: int | None = None
    waits: bool = False

    def draw(self, session: str, number: int) -> tuple[Fault, ...]:
        """The faults of an answer; () for none.

        Args:
            session: the name of the session of its request.
            number: of the request in its session, from 1.
        """
        if not self.choices:
            return ()
        drawn = derive_int(self.seed, session, number, "rate", below=_PARTS)
        if drawn >= self.rate * _PARTS:
            return ()
        return self.choices[
            derive_int(self.seed, session, number, "fault", below=len(self.choices))
        ]


NO_PLAN = FaultPlan()
"""No fault."""


def read_plan(written: Iterable[str], *, rate: float = 1.0, seed: str = "0") -> FaultPlan:
    """The plan of faults as options have them.

    Raises:
        UsageError: what is wrong in one of them.
    """
    choices: list[tuple[Fault, ...]] = []
    limits: list[Fault] = []
    for text in written:
        faults = parse_faults(text)
        of_server = [fault for fault in faults if fault.name in OF_SERVERS]
        if of_server and len(faults) > 1:
            raise UsageError(
                f"fault {text!r}: {of_server[0].name} concerns all connections; give it in an "
                "option of its own"
            )
        if of_server:
            limits += of_server
        else:
            choices.append(faults)
    if len(limits) > 1:
        raise UsageError(
            f"{limits[0].name} and {limits[1].name} both bound the number of connections; keep one"
        )
    limit = limits[0] if limits else None
    return FaultPlan(
        tuple(choices),
        rate,
        seed,
        None if limit is None else limit.number("number", 1),
        limit is not None and limit.name == "slow-accept",
    )
