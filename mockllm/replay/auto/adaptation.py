"""What a request decides of the reply of a turn: its automatic parts, and the limits that it obeys.
Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import AnyPart, Scenario, TurnSpec

if TYPE_CHECKING:
    from mockllm.replay.auto.limits import Limits


@record
class Adaptation:
    """What a request decides of a reply; equal for requests that get the same one.

    Args:
        auto: the parts in place of an automatic one; () where the reply has none.
        limits: those that the reply obeys.
    """

    auto: tuple[AnyPart, ...] = ()
    limits: Limits | None = None

    def applied(self, spec: TurnSpec, scenario: Scenario) -> TurnSpec:
        """The turn as the request gets it."""
        if self.auto:
            spec = replace(spec, reply=self.auto)
        if self.limits is None:
            return spec
        from mockllm.replay.auto.limits import obeyed

        obeying = obeyed(spec, scenario, self.limits)
        choices = tuple(obeyed(choice, scenario, self.limits) for choice in spec.choices)
        if choices and obeying.usage is not None:  # all of them are counted
            obeying = replace(obeying, usage=replace(obeying.usage, output=None))
        return replace(obeying, choices=choices)


def adaptation(
    spec: TurnSpec, scenario: Scenario, request: Request, protocol: WireProtocol
) -> Adaptation | None:
    """What a request decides of the reply of a turn; None for nothing, as in most turns.

    Raises:
        RequestError: the turn has no automatic reply to this request, or none as long as it needs.
    """
    if not (spec.is_auto or spec.obey or scenario.obey):
        return None
    # Imported with the first such turn.
    from mockllm.replay.auto.limits import limits_of

    limits = limits_of(spec, scenario, request, protocol)
    if not spec.is_auto:
        return Adaptation(limits=limits)
    from mockllm.replay.auto.autoreply import automatic_reply

    return Adaptation(automatic_reply(spec, scenario, request, protocol), limits)
