"""The turn that was selected, with values of the request in its texts (`template: true`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import ExpectationError, RequestError
from mockllm.core.jsontext import parse
from mockllm.core.patterns import compile_pattern
from mockllm.core.request import CallEcho, Message, Request, has_placeholder
from mockllm.play.agents.tools import tool_use
from mockllm.play.matching.branching import take_branch, taken_at, way_after, way_to
from mockllm.play.matching.conditions import text_holds
from mockllm.play.matching.conversation import (
    Selection,
    planned_calls,
    read_history,
    turn_at,
    turn_index,
)
from mockllm.play.matching.route_selection import RouteRequest, placeholder_values
from mockllm.play.replay.sessions.exchange import Played
from mockllm.scenario.model import (
    Expect,
    Match,
    Scenario,
    TurnSpec,
    positive_entries,
    regexes_of,
)
from mockllm.scenario.part_model import AnyPart, PartPath, ToolPart, map_members, tool_parts
from mockllm.scenario.route_model import RouteSpec
from mockllm.scenario.templates import TemplateError, Values, as_text, render_json
from mockllm.scenario.turn_texts import with_texts


def fill_selection(selection: Selection, request: Request) -> Selection:
    """A selection whose turn has values of the request in its texts.

    Raises:
        RequestError: a text needs a value that the request does not have.
    """
    scenario, index = selection.scenario, selection.index
    if scenario.is_template(scenario.turns[index]):
        values = request_values(request, selection)
        turn, texts = fill(scenario, selection.turn, scenario.turns[index], values)
        selection = selection.playing(turn, texts)
    return _with_machine(_with_tools(selection, request), request)


def _with_tools(selection: Selection, request: Request) -> Selection:
    """A selection whose turn calls the tools that a request offers for actions.

    Raises:
        RequestError: it offers none for one of them.
    """
    scenario, index = selection.scenario, selection.index
    turn = scenario.turns[index].for_api(request.api)
    if not turn.has_actions:
        return selection
    offered = [tool.name for tool in request.tools]

    def change(path: PartPath, part: AnyPart) -> AnyPart:
        if not isinstance(part, ToolPart) or not part.action:
            return part
        use = tool_use(part.action, parse(part.arguments or "{}"), offered)
        if use is None:
            raise ExpectationError(
                f"Turn {selection.turn + 1} of scenario {scenario.name!r} has {part.action!r}, and "
                f"the request offers no tool for it; it offers: {', '.join(offered) or 'none'}.",
                code="no_tool",
            )
        return replace(part, name=use.tool, arguments=use.text, custom=use.custom)

    def with_calls(form: TurnSpec) -> TurnSpec:
        return replace(form, reply=tuple(map_members(part, change) for part in form.reply))

    turn = replace(
        with_calls(turn),
        attempts=tuple(map(with_calls, turn.attempts)),
        choices=tuple(map(with_calls, turn.choices)),
    )
    return selection.playing(turn, tuple(offered))


def _with_machine(selection: Selection, request: Request) -> Selection:
    """A selection whose turn has the folders of the client's machine in place of placeholders."""
    scenario, index, world = selection.scenario, selection.index, request.world
    if world is None or world.is_recorded or not scenario.has_machine(scenario.turns[index]):
        return selection
    texts: list[str] = []

    def change(path: tuple[str | int, ...], value: Any) -> Any:
        lacking = world.lacking(as_text(value))
        if lacking:
            where = ".".join(map(str, path))
            raise RequestError(
                f"Turn {selection.turn + 1} of scenario {scenario.name!r}, {where}: it has "
                f"<{lacking}>, which this request does not state.",
                code="no_value",
            )
        filled = world.fill_value(value)
        texts.append(as_text(filled))
        return filled

    turn = with_texts(scenario.turns[index], change, has_placeholder)
    return selection.playing(turn, tuple(texts)) if texts else selection


def in_form(selection: Selection, request: Request) -> Selection:
    """A selection whose turn is the form that answers a request, with its values; of several that
    may be drawn, the first.

    Raises:
        RequestError: a text needs a value that the request does not have.
    """
    selection = take_branch(selection, request)
    turn = selection.scenario.turns[selection.index]
    if turn.one_of:
        number = selection.form + 1
        selection = selection.playing(turn.one_of[0].turn, number, number)
    return fill_selection(selection, request)


def fill(
    scenario: Scenario, number: int, turn: TurnSpec, values: Values
) -> tuple[TurnSpec, tuple[str, ...]]:
    """A turn with values in its texts, and these texts.

    Args:
        number: the index of the turn in the file, for messages.
    """
    texts: list[str] = []

    def change(path: tuple[str | int, ...], value: Any) -> Any:
        try:
            rendered = render_json(value, values)
        except TemplateError as error:
            where = ".".join(map(str, path))
            raise RequestError(
                f"Turn {number + 1} of scenario {scenario.name!r}, {where}: {error}.",
                code="template",
            ) from None
        texts.append(as_text(rendered))
        return rendered

    return with_texts(turn, change), tuple(texts)


def request_values(request: Request, selection: Selection) -> Values:
    """The values of a request for an answer of a model, by the beginnings of paths of templates."""
    history, position = read_history(request.messages), selection.position
    results = history.results
    if history.turns or not position:
        calls = [_call(call) for turn in history.turns[-1:] for call in turn.calls]
    else:
        calls = _calls_before(selection, request.api)
    return {
        "request": lambda: {
            "user": request.last_user.text,
            "system": request.system,
            "model": request.model,
            "body": request.body,
        },
        "calls": lambda: calls,
        "call": lambda: _of_result(calls, results),
        "results": lambda: [_result(message) for message in results],
        "result": lambda: _result(results[-1]) if results else None,
        "turn": lambda: position + 1,
        "match": lambda: _groups(selection, request),
    }


def _groups(selection: Selection, request: Request) -> Mapping[str, str]:
    """What the named groups of conditions have: of `match`, in the last user message that meets
    its condition, and of the turn's `request`."""
    scenario, found = selection.scenario, dict[str, str]()
    users = [message.text for message in request.users]
    expected = scenario.turns[selection.index].request
    conditions = [
        (entry.system, [request.system]) for entry in positive_entries(scenario.match or Match())
    ]
    conditions += [(entry.user, users) for entry in positive_entries(scenario.match or Match())]
    conditions += [(entry.user, users[-1:]) for entry in positive_entries(expected or Expect())]
    for condition, texts in conditions:
        text = next((t for t in reversed(texts) if condition and text_holds(condition, t)), "")
        for regex in regexes_of(condition):
            found |= compile_pattern(regex).groups_in(text)
    return found


def route_values(request: RouteRequest, route: RouteSpec) -> Values:
    """The values of a request for a route that calls no model, by the beginnings of paths of
    templates."""
    return {
        "request": lambda: {
            "model": request.model,
            "body": request.fields,
            "path": placeholder_values(route, request.path),
            "query": request.parameters,
        }
    }


def _call(call: CallEcho) -> Mapping[str, Any]:
    return {"name": call.name, "id": call.id, "arguments": _json(call.arguments)}


def _calls_before(selection: Selection, api: str) -> list[Mapping[str, Any]]:
    """The calls of the answer that a request names by its id, as the scenario has them. Arguments
    that had values of an earlier request are not known."""
    before, position = selection.scenario, selection.position - 1
    spec, planned = turn_at(before, position, api), planned_calls(before, position, api)
    if spec is None or planned is None:
        return []
    return [
        {"name": call.name, "id": call.id}
        if "{{" in (part.arguments or "") and before.is_template(spec)
        else _call(CallEcho(call.id, call.name, part.arguments or "{}"))
        for call, part in zip(planned, tool_parts(spec.reply), strict=True)
    ]


def _of_result(calls: Sequence[Mapping[str, Any]], results: Sequence[Message]) -> Any:
    """The call that the last result answers, else the last call; None where there is none."""
    last = results[-1] if results else None
    answered = [
        call for call in calls if last and (call["id"] or call["name"]) in (last.call_id, last.name)
    ]
    return next(reversed(answered or calls), None)


def _result(message: Message) -> Mapping[str, Any]:
    return {
        "text": message.text,
        "json": _json(message.text),
        "name": message.name,
        "id": message.call_id,
    }


def _json(text: str) -> Any:
    """The JSON value of a text; a text that is none is itself."""
    try:
        return parse(text)
    except ValueError:
        return text


def played_selection(
    scenario: Scenario, played: Played, request: Request | None = None
) -> Selection | None:
    """The selection that answered a request, from what the journal has of it; None where no turn
    did, or the scenario is another one now.

    Args:
        scenario: as it is written.
        request: None: its values are not put into the texts.

    Raises:
        RequestError: the request does not have them any more.
    """
    position, turn = played.position, played.turn
    if position is None or turn is None or turn >= len(scenario.turns):
        return None
    if not scenario.varies:
        if turn_index(scenario, position) is None:
            return None
        selection = Selection(scenario, position, turn)
        if request is not None:
            selection = _with_machine(_with_tools(selection, request), request)
        return selection
    if played.form >= len(scenario.turns[turn].forms()):
        return None
    selection = Selection(way_to(scenario, position, turn, played.form), position, position)
    return selection if request is None else fill_selection(selection, request)


def played_turn(scenario: Scenario, played: Played) -> TurnSpec | None:
    """The turn that answered a request, without its values; None where there is none."""
    selection = played_selection(scenario, played)
    return (
        None
        if selection is None
        else selection.scenario.turns[selection.index].for_api(played.api or "")
    )


def way_on(scenario: Scenario, played: Played, request: Request) -> Scenario:
    """A scenario as its conversation goes on after an answer that the journal has."""
    position, turn = played.position, played.turn
    if not scenario.varies or position is None or turn is None or turn >= len(scenario.turns):
        return scenario
    taken = taken_at(scenario, position, turn, played.form)
    return way_after(scenario, position, taken, request, ())
