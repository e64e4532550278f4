"""Requests that are written: read again they are the same, but for what an API cannot express."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.request import (
    CallEcho,
    Message,
    OfferedTool,
    Parameters,
    Request,
    SentFile,
)
from mockllm.play.replay.client_requests import client_target
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.writing import joined_answers
from tests.wire.protocols.strict import problems

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
STRICT = {**SCHEMA, "additionalProperties": False}
LOOK = OfferedTool("look", "Looks.", SCHEMA)
RUN = OfferedTool("run", "Runs.", STRICT)
PATCH = OfferedTool("patch", "Patches.", custom=True, grammar="start: /a/")

FILES = (
    SentFile("image/png", PNG),
    SentFile("image/*", PNG),
    SentFile("image/*", reference="https://example.com/a.png"),
    SentFile("image/*", reference="file-1"),
    SentFile("application/pdf", "JVBERi0="),
    SentFile("*/*", reference="https://example.com/a.pdf"),
    SentFile("*/*", reference="file-2"),
    SentFile("audio/wav", "UklGRg=="),
    SentFile("image/png", reference="s3://bucket/a.png"),
)

texts = st.one_of(st.sampled_from(["Hello", "Be brief.", "é\n\u2028", "{}"]), st.text("ab \n"))
said = texts.filter(str.strip)
arguments = st.sampled_from(['{"a":"b"}', "{}", '{"a":{"b":[1,2.5,null]}}'])


def system(text: str) -> Message:
    return Message("system", text)


@st.composite
def histories(draw: st.DrawFn, tools: Sequence[OfferedTool]) -> tuple[Message, ...]:
    """Histories that a service takes: each call of an answer has its result before the next."""
    history = [system(draw(said))] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        files = draw(st.lists(st.sampled_from(FILES), max_size=2))
        history.append(Message("user", draw(said), files=tuple(files)))
        if draw(st.booleans()):
            continue
        names = draw(st.lists(st.sampled_from(tools), max_size=3)) if tools else []
        calls = []
        for tool in names:
            number += 1
            text = draw(said if tool.custom else arguments)
            calls.append(CallEcho(f"call_{number}", tool.name, text))
        history.append(Message("assistant", draw(texts if calls else said), tuple(calls)))
        for call in draw(st.permutations(calls)):
            error, text = draw(st.booleans()), draw(texts)
            history.append(Message("tool", text, (), call.id, call.name, error))
        if draw(st.integers(0, 4)) == 0:
            history.append(system(draw(said)))
    if history[-1].role != "user":
        history.append(Message("user", draw(said)))
    return tuple(history)


@st.composite
def requests(draw: st.DrawFn, api: str) -> Request:
    tools = tuple(draw(st.lists(st.sampled_from([LOOK, RUN, PATCH]), unique_by=id)))
    names = [tool.name for tool in tools]
    history = draw(histories(tools))
    return Request(
        api,
        draw(st.sampled_from(["gemini-3-pro", "gpt-5", "a-model"])),
        {},
        draw(st.booleans()),
        history,
        "\n".join(message.text for message in history if message.role == "system"),
        tools,
        draw(st.sampled_from(["auto", "none", "required", *names])) if tools else "auto",
        output_schema=draw(st.sampled_from([None, {}, SCHEMA])),
        wants_reasoning=draw(st.booleans()),
    )


NONE = Parameters()

parameter_sets = st.builds(
    Parameters,
    max_tokens=st.one_of(st.none(), st.integers(16, 5000)),
    temperature=st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])),
    top_p=st.one_of(st.none(), st.sampled_from([0.0, 0.9])),
    stop=st.lists(st.sampled_from(["END", "\n\n"]), unique=True).map(tuple),
    seed=st.one_of(st.none(), st.integers(0, 9)),
    parallel_calls=st.sampled_from([None, True, False]),
    cache_marks=st.integers(0, 2),
    min_tokens=st.one_of(st.none(), st.integers(0, 9)),
    ignore_eos=st.sampled_from([None, True, False]),
)


def written(request: Request, parameters: Parameters = NONE) -> Any:
    """A body as it is sent."""
    return json.loads(json.dumps(PROTOCOLS[request.api].client.write(request, parameters)))


def project(request: Request, *, strict: bool = False) -> Request:
    """What is left of a request that is written and read."""
    protocol = PROTOCOLS[request.api]
    target = client_target(protocol, request.model, stream=request.stream)
    return replace(protocol.parse(written(request), target, strict), body={}, traits=frozenset())


# What is lost, by hand


def kept_files(keep: Callable[[SentFile], SentFile | None], request: Request) -> Request:
    """The request with other files."""
    messages = [
        replace(message, files=tuple(filter(None, map(keep, message.files))))
        for message in request.messages
    ]
    return replace(request, messages=tuple(messages))


def without_names(request: Request) -> Request:
    """Results have the id of their call only."""
    return of_messages(request, lambda message: replace(message, name=""))


def without_errors(request: Request) -> Request:
    """Results are never failures."""
    return of_messages(request, lambda message: replace(message, error=False))


def of_messages(request: Request, change: Callable[[Message], Message]) -> Request:
    return replace(request, messages=tuple(map(change, request.messages)))


def with_functions(request: Request) -> Request:
    """A custom tool is a function with the field `input`."""
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    tools = [
        OfferedTool(tool.name, tool.description, schema) if tool.custom else tool
        for tool in request.tools
    ]

    def called(message: Message) -> Message:
        calls = [
            replace(call, arguments=compact({"input": call.arguments}))
            if call.name == PATCH.name
            else call
            for call in message.calls
        ]
        return replace(message, calls=tuple(calls))

    return of_messages(replace(request, tools=tuple(tools)), called)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def typed(file: SentFile) -> SentFile:
    """The type of an image is read from its bytes."""
    return SentFile("image/png", PNG) if file.data == PNG else file


def untyped_reference(file: SentFile) -> SentFile:
    """What is referred to has no exact type."""
    kind = "image/*" if file.media_type.startswith("image/") else "*/*"
    return replace(file, media_type=kind) if file.reference else file


def chat(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        is_image = file.media_type.startswith("image/")
        return typed(untyped_reference(file)) if is_image or "://" not in file.reference else None

    return without_names(without_errors(kept_files(keep, request)))


def responses(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        return None if file.media_type == "audio/wav" else typed(untyped_reference(file))

    request = without_names(without_errors(kept_files(keep, request)))
    messages: list[Message] = []
    for message in request.messages:
        if message.text or message.role != "assistant":
            messages.append(replace(message, calls=()))
        messages += [Message("assistant", calls=(call,)) for call in message.calls]
    return replace(request, messages=tuple(messages))


def anthropic(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        return None if file.media_type == "audio/wav" else typed(untyped_reference(file))

    request = with_functions(without_names(kept_files(keep, request)))
    forced = request.tool_choice not in ("auto", "none")
    return replace(
        request,
        output_schema=request.output_schema or None,
        wants_reasoning=request.wants_reasoning and not forced,
    )


def bedrock(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        return typed(file) if file.data or file.reference.startswith("s3:") else None

    request = with_functions(without_names(kept_files(keep, request)))
    messages: list[Message] = []
    for message in map(visible, request.messages):
        before = messages[-1] if messages else None
        if before is not None and before.role == message.role == "user":
            text, files = before.text + message.text, before.files + message.files
            messages[-1] = Message("user", text, files=files)
        elif before is not None and before.role == message.role == "system":
            messages[-1] = Message("system", before.text + message.text)
        else:
            messages.append(message)
    choice = request.tool_choice
    return replace(
        request,
        messages=tuple(messages),
        tool_choice="auto" if choice == "none" else choice,
        output_schema=request.output_schema or None,
    )


def visible(message: Message) -> Message:
    """The service takes no blank text."""
    blank = message.role == "assistant" and not message.text.strip()
    return replace(message, text="") if blank else message


def gemini(request: Request) -> Request:
    def no_error(message: Message) -> Message:
        return message if message.text else replace(message, error=False)

    request = of_messages(with_functions(kept_files(typed, request)), no_error)
    others = [message for message in request.messages if message.role != "system"]
    if not request.model.startswith("gemini-3"):
        others = without_ids(others)
    first = [system(request.system)] if request.system else []
    return replace(request, messages=(*first, *others))


def without_ids(messages: list[Message]) -> list[Message]:
    """Calls have no ids, and the results of an answer are in the order of its calls."""
    order = {call.id: place for place, call in enumerate(c for m in messages for c in m.calls)}
    out: list[Message] = []
    for message in messages:
        out.append(message)
        place = len(out) - 1
        while message.role == "tool" and out[place - 1].role == "tool":
            if order[out[place - 1].call_id] < order[message.call_id]:
                break
            out[place - 1 : place + 1] = out[place], out[place - 1]
            place -= 1
    bare = [replace(m, calls=tuple(replace(call, id="") for call in m.calls)) for m in out]
    return [replace(message, call_id="") for message in bare]


def ollama(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        return SentFile("image/*", file.data) if file.data == PNG else None

    request = with_functions(without_errors(kept_files(keep, request)))
    return replace(request, tool_choice="auto")


def cohere(request: Request) -> Request:
    def keep(file: SentFile) -> SentFile | None:
        is_image = file.media_type.startswith("image/")
        return typed(untyped_reference(file)) if is_image else None

    request = with_functions(without_names(without_errors(kept_files(keep, request))))
    choice = request.tool_choice
    return replace(request, tool_choice=choice if choice in ("none", "required") else "auto")


def realtime(request: Request) -> Request:
    """Images are the only files; the rest as Responses, without schema and reasoning."""

    def keep(file: SentFile) -> SentFile | None:
        return file if file.media_type.startswith("image/") else None

    request = responses(with_functions(kept_files(keep, request)))
    return replace(request, stream=True, output_schema=None, wants_reasoning=False)


def interactions(request: Request) -> Request:
    """One system prompt, before the history."""
    request = with_functions(kept_files(typed, request))
    others = [message for message in request.messages if message.role != "system"]
    first = [system(request.system)] if request.system else []
    return replace(request, messages=(*first, *others))


def live(request: Request) -> Request:
    """As Gemini, with ids, and without a choice of tools and a schema."""

    def no_error(message: Message) -> Message:
        return message if message.text else replace(message, error=False)

    request = of_messages(with_functions(kept_files(typed, request)), no_error)
    others = [message for message in request.messages if message.role != "system"]
    first = [system(request.system)] if request.system else []
    return replace(
        request,
        messages=(*first, *others),
        stream=True,
        tool_choice="auto",
        output_schema=None,
    )


def agui(request: Request) -> Request:
    def no_error(message: Message) -> Message:
        return message if message.text else replace(message, error=False)

    request = with_functions(without_names(kept_files(lambda file: None, request)))
    return replace(
        of_messages(request, no_error),
        model="ag-ui",
        stream=True,
        tool_choice="auto",
        output_schema=None,
        wants_reasoning=False,
    )


KEPT = {each.__name__: each for each in (chat, responses, anthropic, bedrock, gemini, ollama)}
KEPT |= {each.__name__: each for each in (cohere, agui, realtime, live, interactions)}
"""By API, what is left of a request; `completions` has a law of its own."""

APIS = st.sampled_from(sorted(KEPT))


@given(APIS, st.data())
def test_what_is_lost(api: str, data: st.DataObject) -> None:
    """A request that is written and read, strictly, is the same but for what is lost by the hand-
    written table; assistant messages in a row are one."""
    request = data.draw(requests(api))
    request = replace(request, messages=tuple(joined_answers(request.messages)))
    found, kept = project(request, strict=True), KEPT[api](request)
    assert described(found) == described(kept)


def described(request: Request) -> dict[str, Any]:
    """The fields of a request; the system prompt repeats its messages."""
    found = {field.name: getattr(request, field.name) for field in fields(request)}
    prompts = [message.text for message in request.messages if message.role == "system"]
    assert found.pop("system").replace("\n", "") == "".join(prompts).replace("\n", "")
    return found


@given(st.sampled_from(sorted(PROTOCOLS)), st.sampled_from(sorted(PROTOCOLS)), st.data())
def test_what_was_read_is_written_again(down: str, up: str, data: st.DataObject) -> None:
    """Writing and reading a second time loses nothing, also of what another API read."""
    request = project(data.draw(requests(down)))
    once = project(replace(request, api=up))
    assert project(once) == once


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), texts)))
def test_a_prompt(pairs: list[tuple[Any, str]]) -> None:
    """Completions keeps texts and roles, without spaces around them; results are the user's."""
    messages = tuple(Message(role, text.strip(" ")) for role, text in pairs if text.strip())
    request = Request("completions", "m", {}, messages=messages or (Message("user", "a"),))
    roles = {"tool": "user"}
    expected = [(roles.get(m.role, m.role), m.text.rstrip()) for m in request.messages]
    found = [(m.role, m.text.rstrip()) for m in project(request, strict=True).messages]
    assert found == expected


def test_a_single_prompt_that_looks_like_a_conversation() -> None:
    """It stays one message of the user."""
    request = Request("completions", "m", {}, messages=(Message("user", "Human: a"),))
    assert project(request).messages == request.messages


OF_VLLM = ("min_tokens", "ignore_eos")
MISSING = {
    "chat": {"cache_marks"},
    "responses": {"stop", "seed", "cache_marks", *OF_VLLM},
    "anthropic": {"seed", *OF_VLLM},
    "gemini": {"parallel_calls", "cache_marks", *OF_VLLM},
    "bedrock": {"seed", "parallel_calls", *OF_VLLM},
    "ollama": {"parallel_calls", "cache_marks", *OF_VLLM},
    "cohere": {"parallel_calls", "cache_marks", *OF_VLLM},
    "interactions": {"parallel_calls", "cache_marks", *OF_VLLM},
    "completions": {"parallel_calls", "cache_marks"},
    "agui": {field.name for field in fields(Parameters)},
    "realtime": {field.name for field in fields(Parameters)} - {"max_tokens"},
    "live": {field.name for field in fields(Parameters)} - {"max_tokens", "temperature", "top_p"},
}
"""By API, the parameters that it has no field for."""


@given(st.sampled_from(sorted(PROTOCOLS)), parameter_sets)
def test_parameters(api: str, parameters: Parameters) -> None:
    """They are read as they were written, but for those that the API does not have. Anthropic
    requires the greatest number of tokens."""
    history = (system("Be brief."), Message("user", "Hello"))
    request = Request(api, "m", {}, messages=history, system="Be brief.", tools=(LOOK,))
    lost = {name: getattr(Parameters(), name) for name in MISSING[api]}
    expected = replace(parameters, **lost)
    if api == "anthropic" and parameters.max_tokens is None:
        expected = replace(expected, max_tokens=1024)
    protocol = PROTOCOLS[api]
    body = written(request, parameters)
    assert protocol.client.parameters(body) == expected
    plain = protocol.parse(body, client_target(protocol, "m", stream=False), True)
    assert replace(plain, body={}, traits=frozenset()) == project(replace(request, stream=False))


@pytest.mark.parametrize("api", PROTOCOLS)
@given(value=st.recursive(st.none() | st.booleans() | st.text(max_size=2), st.lists, max_leaves=3))
def test_parameters_of_any_body(api: str, value: Any) -> None:
    """Values of another kind than the API's count as absent, and none fails."""
    client = PROTOCOLS[api].client
    request = Request(api, "m", {}, messages=(Message("user", "Hello"),), tools=(LOOK,))
    body = client.write(request, Parameters(99, 0.5, 0.5, ("a",), 1, False, 1))
    for name in body:
        client.parameters({**body, name: value})
        if isinstance(body[name], dict):
            client.parameters({**body, name: dict.fromkeys(body[name], value)})


def test_reasoning_of_claude() -> None:
    """Its budget is less than the greatest number of tokens: it is left out where there is no room
    for it, and the usual number grows."""
    protocol = PROTOCOLS["anthropic"]
    request = Request("anthropic", "m", {}, messages=(Message("user", "a"),), wants_reasoning=True)
    for given_most, most, reasons in ((None, 2048, True), (1024, 1024, False)):
        body = written(request, Parameters(given_most))
        assert body["max_tokens"] == most
        found = protocol.parse(body, client_target(protocol, "m"), True)
        assert found.wants_reasoning is reasons


def test_older_names() -> None:
    """Chat Completions: `max_tokens`, and `stop` as a text. Gemini: names of protocol buffers."""
    read = PROTOCOLS["chat"].client.parameters
    assert read({"max_tokens": 7, "stop": "END"}) == Parameters(7, stop=("END",))
    snake = {"generation_config": {"max_output_tokens": 7, "top_p": 0.5}}
    assert PROTOCOLS["gemini"].client.parameters(snake) == Parameters(7, top_p=0.5)


def test_the_last_message_is_marked() -> None:
    """Without a system prompt, the last message of the user is marked to be cached."""
    history = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    for api, mark in (("anthropic", "cache_control"), ("bedrock", "cachePoint")):
        body = written(Request(api, "m", {}, messages=history), Parameters(cache_marks=1))
        assert mark in json.dumps(body["messages"][-1])
        assert mark not in json.dumps(body["messages"][:-1])


def test_ids_and_names_that_a_history_lacks() -> None:
    """Calls of a history without ids get some where the API needs them, and results find their
    calls; an API with names gets those of the calls."""
    calls = (CallEcho("", "look", "{}"), CallEcho("", "run", "{}"))
    results = (Message("tool", "1", name="run"), Message("tool", "2", name="look"))
    history = (Message("user", "a"), Message("assistant", calls=calls), *results)
    found = project(Request("chat", "m", {}, messages=history, tools=(LOOK, RUN)), strict=True)
    assert [call.id for call in found.messages[1].calls] == ["call_1", "call_2"]
    assert [message.call_id for message in found.messages[2:]] == ["call_2", "call_1"]
    back = project(replace(found, api="ollama"))
    assert [message.name for message in back.messages[2:]] == ["run", "look"]


# The types of the SDKs


def rich(api: str) -> Request:
    """A request with all that there is."""
    calls = (CallEcho("call_1", "look", '{"a":"b"}'), CallEcho("call_2", "run", '{"a":"c"}'))
    history = (
        system("Be brief."),
        Message("user", "What is this?", files=FILES),
        Message("assistant", "I look.", calls),
        Message("tool", "A cat.", call_id="call_1", name="look"),
        Message("tool", "It is not there.", call_id="call_2", name="run", error=True),
        Message("assistant", "A cat."),
        Message("user", "Sure?"),
    )
    return Request(
        api,
        "gemini-3-pro",
        {},
        True,
        history,
        "Be brief.",
        (LOOK, RUN),
        "look",
        output_schema=STRICT,
        wants_reasoning=True,
    )


EVERY = Parameters(2000, 0.5, 0.9, ("END",), 7, False, 2)


def test_the_types_of_openai() -> None:
    """Bodies of the three APIs of OpenAI are those that the types of its SDK describe."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as Chat
    from openai.types.completion_create_params import (
        CompletionCreateParamsStreaming as Completions,
    )
    from openai.types.responses.response_create_params import (
        ResponseCreateParamsStreaming as Responses,
    )

    types = {"chat": Chat, "responses": Responses, "completions": Completions}
    for api, type in types.items():
        assert problems(type, written(rich(api), EVERY)) == []
        if api != "completions":
            custom = replace(rich(api), tools=(LOOK, RUN, PATCH), tool_choice="patch")
            assert problems(type, written(custom, EVERY)) == []


def test_the_types_of_anthropic() -> None:
    """A body is what the types of Anthropic's SDK describe."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    assert problems(MessageCreateParamsStreaming, written(rich("anthropic"), EVERY)) == []


def test_the_types_of_google() -> None:
    """The parts of a body are what the types of Google's SDK describe; they refuse other fields."""
    from google.genai import types

    body = written(rich("gemini"), EVERY)
    for content in (*body["contents"], body["systemInstruction"]):
        types.Content.model_validate(content)
    for tool in body["tools"]:
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(body["toolConfig"])
    types.GenerationConfig.model_validate(body["generationConfig"])


def test_the_types_of_aws() -> None:
    """A body is what the description of Converse in Amazon's SDK says."""
    import botocore.session
    from botocore.validate import ParamValidator

    session = botocore.session.get_session()
    shape = session.get_service_model("bedrock-runtime").operation_model("ConverseStream")
    body = {"modelId": "m", **written(rich("bedrock"), EVERY)}
    report = ParamValidator().validate(body, shape.input_shape)
    assert not report.has_errors(), report.generate_report()


def test_the_types_of_other_sdks() -> None:
    """So are the messages of AG-UI and Ollama."""
    from ag_ui.core import RunAgentInput
    from ollama._types import ChatRequest

    RunAgentInput.model_validate(written(rich("agui"), EVERY))
    ChatRequest.model_validate(written(rich("ollama"), EVERY))
