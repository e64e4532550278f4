"""Remarks on things that good clients do on purpose and others by mistake: what a request lost of
the one before it, answers that call what it does not offer, and recordings that answer another
request than theirs. Pure.

An agent leaves out its tools to get a last answer, and a scenario calls an unknown tool to see what
a client does. So these are remarks; a verdict counts them only where they are required.
"""

from __future__ import annotations

from mockllm.checking.conversations.session_history import JudgedSession, Violations, violation
from mockllm.core.jsontext import parse
from mockllm.core.patterns import PatternGaveUpError
from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.scenario.reading.values import excerpt
from mockllm.scenario.schema_validation import SchemaGaveUpError, Steps, Validator, schema_flaw

_MOST_STEPS = 10_000
"""Of a client's schema, for the arguments of one call."""


def kept_of_before(record: JudgedSession) -> Violations:
    """A request without the system prompt or the tools of the one whose answer it continues."""
    for step in record.history.steps:
        before = step.last.played if step.last is not None else []
        if not before or (step.request.agent and step.request.previous is not None):
            continue  # what an agent does not send again the service has by the id of the answer
        if not step.request.system and all(answer.request.system for answer in before):
            yield violation("system-gone", step, number=before[-1].number)
        if not step.request.tools and all(answer.request.tools for answer in before):
            yield violation("tools-gone", step, number=before[-1].number)


_MOST_CHANGES = 3


def requests_unchanged(record: JudgedSession) -> Violations:
    """A request that got the recording of another one: what has become of the prompt, the tools or
    a result since then is not what the recorded service answered."""
    for exchange in record.journal:
        played = exchange.played
        if played.changes and played.turn is not None:
            changes = "; ".join(played.changes[:_MOST_CHANGES])
            if len(played.changes) > _MOST_CHANGES:
                changes += f"; and {len(played.changes) - _MOST_CHANGES} more"
            recording = f"turn {played.turn + 1} of {played.scenario}"
            yield violation("request-changed", exchange, recording=recording, changes=changes)


def calls_offered(record: JudgedSession) -> Violations:
    """An answer that calls a tool which its request does not offer, or with arguments that the
    tool's schema refuses. A request without tools offers nothing that could be mistyped."""
    for step in record.history.steps:
        offered = {tool.name: tool for tool in step.request.tools}
        if not offered or step.turn is None:
            continue
        for call in step.turn.tool_calls:
            tool = offered.get(call.name)
            if tool is None:
                names = ", ".join(offered)
                yield violation("call-not-offered", step, name=call.name, offered=names)
            elif not tool.custom and (flaw := _flaw(call, tool)):
                yield violation("arguments-refused", step, name=call.name, flaw=flaw)


def _flaw(call: ToolCall, tool: OfferedTool) -> str:
    """Why the schema of a tool refuses the arguments of a call; "" where it does not. Malformed
    arguments are what a scenario means to send."""
    try:
        value = parse(call.arguments or "{}")
    except ValueError:
        return ""
    if schema_flaw(tool.parameters) is not None:
        return ""  # a mistake of the client, which `request-valid` reports where the API refuses it
    try:
        error = Validator(tool.parameters).first_error(value, Steps(_MOST_STEPS))
    except (SchemaGaveUpError, PatternGaveUpError) as problem:
        return f"they could not be checked: {problem}"
    return "" if error is None else excerpt(error.message, 200)
