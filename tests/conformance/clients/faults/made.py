"""Results about faults, made by hand."""

from mockllm.conformance.results import CaseResult, Client, LoggedRequest, Play, Results

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
CUT = Play(
    "the stream is cut inside the arguments of a call",
    scenario="name: cut\nturns: []\n",
    faults=("cut:after=3 events",),
    log=LOG,
    answer={"text": "It is", "errors": [], "tool_calls": []},
)
WRONG = CaseResult(
    "chat/cut-in-a-call:cut-reported",
    "cut-reported",
    "wrong",
    cost="data lost",
    invariant="cut-reported",
    differences=("ends without an error, with the text 'It is'",),
    reproduce=("mockllm check --api chat --http --faults -- x",),
)
ONCE = CaseResult("chat/cut-in-a-call:recovers", "recovers", "right", unconfirmed="sends nothing")
RIGHT = CaseResult("chat/stall:retry-same", "retry-same", "right")
OTHER_RIGHT = CaseResult("chat/stall:cut-reported", "cut-reported", "right")
NOT_JUDGED = CaseResult(
    "chat/cut-in-a-call:leaves-nothing", "leaves-nothing", "not judged", reason="no `left`"
)
NOT_APPLICABLE = CaseResult(
    "chat/stall:retry-bounded",
    "retry-bounded",
    "not applicable",
    reason="the client has no retries",
)
ROWS = (WRONG, OTHER_RIGHT, ONCE, RIGHT, NOT_JUDGED, NOT_APPLICABLE)


def fault_results(name="mine", api="chat", **values):
    """The results of a client that breaks one rule."""
    fields = {
        "cases": ROWS,
        "plays": {"chat/cut-in-a-call": CUT, "chat/stall": Play("the stream stalls")},
        "settings": {"tries": 3, "idle_timeout": 0.3},
    }
    return Results(
        Client(name, "1.0", "python"), api, "http", "0.1", "2026-01-01", **{**fields, **values}
    )
