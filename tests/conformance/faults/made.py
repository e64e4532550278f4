"""Results about faults, made by hand."""

from mockllm.conformance.fault_results import (
    Accusation,
    FaultCaseResult,
    LoggedRequest,
    RuleResult,
)
from mockllm.conformance.results import Client, Results

LOG = (
    LoggedRequest(
        1,
        1,
        0.0,
        "POST /v1/chat/completions",
        {"user-agent": "x"},
        "0123456789abcdef",
        200,
        312,
        "cut:after=3 events",
        0.004,
        312,
        0.005,
        "server",
    ),
    LoggedRequest(
        2, 2, 0.25, "POST /v1/chat/completions", {}, "0123456789abcdef", 200, 900, duration=0.01
    ),
)
CUT = FaultCaseResult(
    "chat/cut-in-a-call",
    "the stream is cut inside the arguments of a call",
    rules=("cut-reported", "recovers"),
    wrong=(Accusation("cut-reported", "ends without an error, with the text 'It is'"),),
    not_judged={"leaves-nothing": "the runner answers no `left`"},
    unconfirmed=(Accusation("recovers", "sends nothing"),),
    scenario="name: cut\nturns: []\n",
    faults=("cut:after=3 events",),
    log=LOG,
    actual={"text": "It is", "errors": [], "tool_calls": []},
    reproduce=("mockllm check --api chat --http --faults -- x",),
)


def fault_results(name="mine", api="chat", **values):
    """The results of a client that breaks one rule."""
    fields = {
        "rules": (
            RuleResult(
                "cut-reported", "wrong", "reports a cut", "", 4, 1, 2, ("chat/cut-in-a-call",)
            ),
            RuleResult("retry-same", "right", "repeats the same", "", 2),
            RuleResult("leaves-nothing", "not judged", "leaves nothing", "no `left`"),
            RuleResult("retry-bounded", "not applicable", "stops", "the client has no retries"),
        ),
        "faults": (CUT, FaultCaseResult("chat/stall", "the stream stalls", ("retry-same",))),
        "settings": {"tries": 3, "idle_timeout": 0.3},
    }
    return Results(
        Client(name, "1.0", "python"), api, "http", "0.1", "2026-01-01", **{**fields, **values}
    )
