"""AG-UI: mistakes of clients with other policies than the default."""

from __future__ import annotations

from mockllm.checking import Policy
from tests.checking.mutants.agui import AppendsToTheLastCall
from tests.checking.mutants.agui_more_calls import LastArgsOnly
from tests.checking.mutants.common import Skips, common
from tests.checking.mutants.declared import mutant

SKIP = Policy(malformed="skip")

common(
    __name__,
    "agui",
    FailsInSilence="Drops the whole answer if arguments do not parse, and reports nothing.",
    UnknownToolDropsAllCalls=(
        "Leaves out every call of a run that calls a tool which was not offered."
    ),
)


@mutant("arguments-concatenate", api="agui", policy=SKIP, family="call identity")
class SkipsArgumentsByPosition(Skips, AppendsToTheLastCall):
    """Appends arguments to the call that began last, and leaves out the calls that do not parse
    (`agui-parallel-calls`, microsoft/agent-framework#6342)."""


@mutant("arguments-concatenate", api="agui", policy=SKIP, family="argument fragments")
class SkipsOverwrittenArguments(Skips, LastArgsOnly):
    """Assigns the arguments, and leaves out the calls whose last fragment does not parse."""
