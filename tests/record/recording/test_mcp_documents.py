"""Documents of recorded MCP servers: each recorded request is asked again, and gets its answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.loading import load
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall
from mockllm.record.recording.store.mcp_documents import write_server
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.scrub import scrub
from tests.serve.mcp.servers import message

KEY = "sk-proj-" + "a1B2c3D4e5" * 5


def asked(method, params=None, *, stateless=False, **outcome):
    """A request, and what came of it."""
    return RecordedCall(message(method, params, stateless=stateless), **outcome)


def called(tool, arguments, text, **outcome):
    """A call that a text answers."""
    content = [{"type": "text", "text": text}]
    return asked(
        "tools/call",
        {"name": tool, "arguments": arguments, "_meta": {"progressToken": 7}},
        answer={"result": {"content": content}},
        **outcome,
    )


def listed(*names, **fields):
    """A list of tools."""
    tools = [{"name": name, "inputSchema": {"type": "object"}, **fields} for name in names]
    return asked("tools/list", answer={"result": {"tools": tools}})


@pytest.fixture
def write(tmp_path):
    """Writes the document of some calls; what is said of it, and the server that it has."""

    def written(*calls, ignore=()):
        said = write_server(tmp_path, "s", calls, Redactor(), ignore)
        (scenario,) = load(tmp_path)
        return said, scenario.server

    return written


def test_a_recorded_answer_is_of_its_own_arguments_alone(write):
    """Also where a call had none: another call was not recorded, and what it gets is not known."""
    _, server = write(listed("read"), called("read", {}, "all"), called("read", {"n": 1}, "one"))
    assert [(entry.match.arguments, entry.match.exact) for entry in server.calls] == [
        (None, True),
        ({"n": 1}, True),
    ]


def test_answers_are_found_again_in_their_order(write):
    """A read before a write and one after it, among others, as often as they were asked."""
    read = ("read", {})
    said, server = write(
        listed("read", "write"),
        called(*read, "0"), called("write", {"to": 5}, "done"), called(*read, "5"),
        called(*read, "5"), called("write", {"to": 6}, "done"),
    )  # fmt: skip
    assert said.found == [""] * 6
    assert said.not_found == ""
    assert said.summary == "2 tools, 5 calls, 5 found again"
    assert [len(entry.answers) for entry in server.calls] == [2, 1, 1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([{}, {"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1, "c": [1, {"d": 2}]}},
                             {"a": {}}, {"a": []}, {"a": [{}]}, {"c": "x"}, {"a": 1, "c": "x"}]),
            st.sampled_from(["", "x", "y"]),
            st.sampled_from([200, 200, 200, 503]),
        ),
        min_size=1,
        max_size=12,
    )
)  # fmt: skip
def test_any_calls_are_found_again(tmp_path_factory, calls):
    """Whatever their arguments have in common, and wherever the server failed."""
    made = [
        called("t", arguments, text) if status == 200 else
        asked("tools/call", {"name": "t", "arguments": arguments}, answer={}, status=status)
        for arguments, text, status in calls
    ]  # fmt: skip
    said = write_server(tmp_path_factory.mktemp("out"), "s", made, Redactor())
    assert said.found == [""] * len(made)


TEXTS = st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}, optional={"_meta": VALUES}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["image", "audio"]),
            "data": st.just("AAAA") | TEXTS,
            "mimeType": st.just("image/png") | TEXTS,
        }
    ),
    st.fixed_dictionaries({"type": st.just("resource"), "resource": VALUES}),
    st.fixed_dictionaries({"type": st.just("resource_link"), "uri": TEXTS}),
    st.dictionaries(TEXTS, VALUES, max_size=2),
)
RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(BLOCKS, max_size=3),
        "structuredContent": VALUES,
        "isError": st.booleans(),
        "_meta": VALUES,
        "more": VALUES,
    },
)
ERRORS = st.fixed_dictionaries(
    {"code": st.integers(-(2**53), 2**53), "message": TEXTS}, optional={"data": VALUES}
)
ANSWERS = st.builds(lambda result: {"result": result}, RESULTS) | st.builds(
    lambda error: {"error": error}, ERRORS
)


@given(st.lists(st.tuples(st.sampled_from("ab"), ANSWERS), min_size=1, max_size=4))
def test_any_answers_are_found_again(tmp_path_factory, answers):
    """Whatever a server answers, with and without a schema of its results."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = [{"name": "a", "inputSchema": schema}, {"name": "b", "outputSchema": schema}]
    made = [
        asked("tools/call", {"name": name, "arguments": {"n": name}}, answer=answer)
        for name, answer in answers
    ]
    folder = tmp_path_factory.mktemp("out")
    listing = asked("tools/list", answer={"result": {"tools": tools}})
    said = write_server(folder, "s", [listing, *made], Redactor())
    assert said.found[1:] == [""] * len(made)


SCHEMAS = st.sampled_from(
    [{"type": "object"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]
)
TOOLS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "with.dot", "weather/now"]), "inputSchema": SCHEMAS | VALUES},
    optional={
        "title": VALUES,
        "description": VALUES,
        "outputSchema": SCHEMAS | VALUES,
        "annotations": VALUES,
        "icons": VALUES,
        "_meta": VALUES,
    },
)


@given(st.lists(TOOLS, min_size=1, max_size=2, unique_by=lambda tool: tool["name"]))
def test_any_list_of_tools_is_found_again(tmp_path_factory, tools):
    """Whatever a tool has, and of whatever type."""
    listing = asked("tools/list", answer={"result": {"tools": tools}})
    calls = [called(tool["name"], {}, "x") for tool in tools]
    said = write_server(tmp_path_factory.mktemp("out"), "s", [listing, *calls], Redactor())
    assert said.found == [""] * (1 + len(tools))


def test_http_errors_are_earlier_tries(write):
    """Of calls and of lists; a server that never answers gives its last error."""
    failed = {"answer": {}, "status": 503}
    said, server = write(
        asked("tools/list", **failed), listed("a", "b"), called("a", {}, "x"),
        asked("tools/call", {"name": "a"}, **failed), called("a", {}, "y"),
        asked("tools/call", {"name": "b"}, **failed), asked("tools/call", {"name": "b"}, **failed),
    )  # fmt: skip
    assert said.found == [""] * 7
    first, second, list_ = server.calls
    assert [(one.http, one.answer and one.answer.text) for one in first.attempts] == [
        (None, ("x",)), (503, None),
    ]  # fmt: skip
    assert (len(second.attempts), second.http, second.answers) == (1, 503, ())
    assert (list_.at, [one.http for one in list_.attempts]) == ("list", [503])


def test_a_list_that_changes_is_changed_by_the_call_before(write):
    """The tools are those of each time, and new ones can be called."""
    said, server = write(
        listed("login"), called("login", {}, "hi"), listed("login", "read"),
        called("read", {}, "x"), called("login", {}, "again"), listed("login"),
    )  # fmt: skip
    assert said.found == [""] * 6
    assert [tool.name for tool in server.tools] == ["login"]


def test_a_list_that_changes_by_itself_is_said(write):
    """No document can play it: the newest list counts."""
    said, server = write(listed("a"), listed("b"))
    assert said.found == [
        "tools/list: what it gets.tools[0].name must be 'a', got 'b'", "",
    ]  # fmt: skip
    assert said.not_found.startswith("1 of 2 requests: tools/list: ")
    assert [tool.name for tool in server.tools] == ["b"]


def test_fields_of_tools_without_a_key_are_kept(write):
    """Icons, what is to come, and schemas that a document would refuse."""
    said, server = write(
        listed("a", icons=[{"src": "x"}], outputSchema={"type": "wrong"}, title="A")
    )
    assert said.found == [""]
    (tool,) = server.tools
    assert (tool.title, tool.output, sorted(tool.fields)) == ("A", None, ["icons", "outputSchema"])


def test_progress_is_kept_for_who_asks_for_it(write):
    """In words where a document counts as the server did, else as it was; other messages that a
    client got meanwhile are counted."""

    def progress(**fields):
        params = {"progressToken": 7, **fields}
        return {"method": "notifications/progress", "params": params}

    before = (
        progress(progress=1, total=2, message="half"),
        {"method": "notifications/message", "params": {}},
        progress(progress=2, total=2, message="whole"),
        {"method": "notifications/progress", "params": {"progressToken": "of another"}},
    )
    said, server = write(
        called("a", {}, "x", before=before),
        called("b", {}, "x", before=(progress(progress=0.5), {"method": "ping", "id": 3})),
    )
    assert [entry.answers[0].progress for entry in server.calls] == [
        ("half", "whole"), ({"progress": 0.5},),
    ]  # fmt: skip
    assert said.summary.endswith("not played: 1 notifications/message, 1 ping")


def test_long_pauses_are_kept(write):
    """In the middle of those of an entry; short ones differ from run to run."""
    _, server = write(
        *(called("slow", {}, "x", after=after) for after in (100, 402_055, 900_000)),
        called("fast", {}, "x", after=40_000),
    )
    assert [entry.ttft for entry in server.calls] == [400_000, 0]


def test_what_is_ignored_makes_calls_equal(write):
    """One entry with its answers in order, which says what it ignores."""
    run = "6f1c0c0e-2f4b-4a7e-9d0a-3f0f6f1c0c0{}"
    said, server = write(
        *(called("a", {"run": run.format(n), "city": "Oslo"}, str(n)) for n in (1, 2)),
        called("a", {"run": run.format(3), "city": "Rome"}, "3"),
        ignore=("uuid",),
    )
    assert said.found == [""] * 3
    assert [(len(entry.answers), entry.match.ignore) for entry in server.calls] == [
        (2, ("uuid",)), (1, ("uuid",)),
    ]  # fmt: skip


def test_secrets_are_hidden_and_not_compared(write, tmp_path):
    """A call with its own secret is found again; no reason quotes one."""
    said, server = write(
        called("a", {"api_key": KEY, "city": "Oslo"}, "x"),
        called("a", {"api_key": KEY, "city": "Rome"}, f"The key {KEY} is wrong."),
        called("a", {"api_key": KEY, "city": "Rome"}, f"The key {KEY} is wrong."),
    )
    assert said.found == [""] * 3
    document = (tmp_path / "mcp-s.yaml").read_bytes()
    assert KEY not in document.decode()
    assert scrub({"mcp-s.yaml": document}, Redactor()) == []
    assert server.calls[0].match.ignore == ("$['api_key']",)
    assert "1 secret hidden" in said.summary


def test_tools_that_are_not_listed_stay_unlisted(write):
    """A document answers them as servers do; where the server did otherwise, that is said."""
    failed = {"result": {"content": [{"type": "text", "text": "No such tool"}], "isError": True}}
    usual = json.loads(json.dumps(failed).replace("No such tool", "Unknown tool: c"))
    said, server = write(
        listed("a"),
        asked("tools/call", {"name": "b"}, answer=failed),
        asked("tools/call", {"name": "c"}, answer=usual),
    )
    assert [bool(why) for why in said.found] == [False, True, False]
    assert [tool.name for tool in server.tools] == ["a"]


def test_what_has_no_place_in_a_document_is_counted(write):
    """Prompts and resources, and a handshake that failed; others are no loss."""
    info = {"result": {"protocolVersion": "2025-11-25", "serverInfo": {}, "instructions": "Ask."}}
    said, server = write(
        asked("initialize", answer={}, status=401),
        asked("initialize", answer=info),
        asked("server/discover", answer={"error": {"code": -32601, "message": "x"}}),
        asked("prompts/list", answer={"result": {"prompts": []}}),
        called("a", {}, "x"),
    )
    assert said.found == [None, "", None, None, ""]
    assert said.summary == (
        "1 tool, 1 call, 1 found again, not played: 1 initialize, 1 prompts/list"
    )
    assert server.instructions == "Ask."


def test_questions_of_the_stateless_era_are_kept(write):
    """Alone as a state, with what they ask as they are."""
    state = {"resultType": "input_required", "requestState": "s1"}
    question = {**state, "inputRequests": {"q": {"method": "elicitation/create"}}}
    call = {"name": "a", "arguments": {}}
    said, server = write(
        *(asked("tools/call", call, answer={"result": one}, stateless=True)
          for one in (state, question)),
        called("a", {}, "x"),
    )  # fmt: skip
    assert said.found[:2] == ["", ""]
    assert server.calls[0].answers[0].ask.state == "s1"
    assert server.calls[0].answers[1].raw == question
