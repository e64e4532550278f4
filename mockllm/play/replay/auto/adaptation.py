"""The parts of a reply that a request decides: its automatic parts, the tokens of its prompt, and
the limits that it obeys. Pure."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.play.replay.auto.limits import Limits, limits_of, obey_limits
from mockllm.scenario.model import Scenario, TurnSpec, UsageSpec
from mockllm.scenario.part_model import AnyPart
from mockllm.wire.protocols.base import WireProtocol, counted_tokens


@record
class Adaptation:
    """The parts of a reply that a request decides; equal for requests that get the same one.

    Args:
        auto: the parts in place of an automatic one; () where the reply has none.
        input_tokens: of the request, for the usage of an automatic reply.
        limits: those that the reply obeys.
    """

    auto: tuple[AnyPart, ...] = ()
    input_tokens: int | None = None
    limits: Limits | None = None

    def apply(self, spec: TurnSpec, scenario: Scenario) -> TurnSpec:
        """The turn as the request gets it."""
        if self.auto:
            spec = replace(spec, reply=self.auto, usage=self._usage(spec, scenario))
        if self.limits is None:
            return spec
        obeying = obey_limits(spec, scenario, self.limits)
        choices = tuple(obey_limits(choice, scenario, self.limits) for choice in spec.choices)
        if choices and obeying.usage is not None:  # all of them are counted
            obeying = replace(obeying, usage=replace(obeying.usage, output=None))
        return replace(obeying, choices=choices)

    def _usage(self, spec: TurnSpec, scenario: Scenario) -> UsageSpec | None:
        """The usage of a turn, with the tokens of the request where it does not say how many."""
        written, default = spec.usage, scenario.defaults.usage
        if any(usage is not None and usage.input is not None for usage in (written, default)):
            return written
        return replace(written or default or UsageSpec(), input=self.input_tokens)


def adaptation(
    spec: TurnSpec, scenario: Scenario, request: Request, protocol: WireProtocol
) -> Adaptation:
    """The adaptation of a turn's reply that is automatic, or obeys.

    Raises:
        RequestError: the turn has no automatic reply to this request, or none as long as it needs.
    """
    limits = limits_of(spec, scenario, request, protocol)
    if not spec.is_auto:
        return Adaptation(limits=limits)
    from mockllm.play.replay.auto.autoreply import automatic_reply  # with the first such turn

    parts = automatic_reply(spec, scenario, request, protocol)
    return Adaptation(parts, max(1, counted_tokens(request)), limits)
