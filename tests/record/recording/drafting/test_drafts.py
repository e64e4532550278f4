"""The scenarios that captured exchanges become."""

import json
from dataclasses import replace
from hashlib import sha256
from itertools import permutations

import pytest

from mockllm.core.http import NO_TARGET
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import loads
from mockllm.record.recording.drafting.draft import LIVE
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.redaction.placeholders import wildcards
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Http, Match, TextCondition
from mockllm.scenario.part_model import visible_text
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.record.recording.exchanging import (
    JSON,
    answer,
    asks,
    calling,
    exchange,
    failure,
    model,
    responding,
    result,
    user,
)
from tests.serve.server.recording.odd_upstream import delta, finish, text_events


def drafts(exchanges, origin=LIVE, **options):
    """The drafts of exchanges of one origin, one for each scenario, in the order of their first
    requests."""
    found, drafting = {}, Drafting(**options)
    for number, one in enumerate(exchanges):
        for draft in drafting.add(one, origin):
            name = draft.scenario.name if draft.scenario is not None else f"\0{number}"
            found[name] = merged(found[name], draft) if name in found else draft
    yield from found.values()


def merged(before, after):
    """The draft of a scenario from two of it."""
    return replace(
        after,
        recorded={**before.recorded, **after.recorded},
        report=before.report + after.report,
        base=before.base,
        stem=before.stem or after.stem,
    )


def tapes(draft):
    """The tapes of a draft, by turn; None where a turn's tape is not new."""
    return [
        found.tape
        if turn.recorded is not None and (found := draft.recorded.get(turn.recorded.file))
        else None
        for turn in draft.scenario.turns
    ]


def drafted(*exchanges, **options):
    """The drafted scenarios by name; they can be loaded together."""
    found = [draft for draft in drafts(exchanges, **options) if draft.scenario is not None]
    scenarios = {draft.scenario.name: draft.scenario for draft in found}
    assert loads("---\n".join(map(dump, scenarios.values()))) == tuple(scenarios.values())
    return scenarios


def texts(scenario):
    return [visible_text(turn.reply) for turn in scenario.turns]


def played(scenarios, *messages, **more):
    """The scenario and turn that answer a request."""
    request = PROTOCOLS["chat"].parse(json.loads(asks(*messages, **more)), NO_TARGET, False)
    selection = select(ScenarioIndex(scenarios.values()), request, {})
    return selection.scenario.name, selection.index


# Conversations


def test_a_conversation_of_three_turns():
    """A request whose history continues an earlier one becomes its next turn, with the user's
    message as its condition. Each turn has its tape, and the scenario matches by the first message.
    """
    first = [user("Hello, World!")]
    second = [*first, model("one"), user("and then?")]
    third = [*second, model("two"), user("and then?")]
    draft, *others = drafts([answer(first, "one"), answer(second, "two"), answer(third, "three")])
    assert not others
    scenario = draft.scenario
    assert (scenario.name, texts(scenario)) == ("hello-world", ["one", "two", "three"])
    assert scenario.match == Match(user=TextCondition("equals", "Hello, World!"))
    requests = [turn.request.user.value if turn.request else None for turn in scenario.turns]
    assert requests == [None, "and then?", "and then?"]
    assert list(draft.recorded) == [turn.recorded.file for turn in scenario.turns]
    assert all(is_unedited(scenario, index, tape) for index, tape in enumerate(tapes(draft)))
    assert [(line.outcome, line.turn) for line in draft.report] == [
        ("neutral", 0), ("neutral", 1), ("neutral", 2)
    ]  # fmt: skip


def test_tool_results_continue():
    """A request that brings results continues the conversation that made the calls."""
    first = [user("look it up")]
    second = [*first, model(None, ("call_7", "look", "{}")), result("call_7", "42")]
    (scenario,) = drafted(calling(first, "call_7"), answer(second, "it is 42")).values()
    assert len(scenario.turns) == 2
    assert scenario.turns[1].request is None
    assert played({"x": scenario}, *second) == ("look-it-up", 1)


def test_conversations_at_once_do_not_mix():
    """Two conversations that begin with the same text are kept apart by their answers; each request
    is answered with its own recording."""
    hello = [user("hello")]
    a = [*hello, model("I am A"), user("who?")]
    b = [*hello, model("I am B"), user("what?")]
    scenarios = drafted(
        answer(hello, "I am A"),
        answer(hello, "I am B"),
        answer(b, "B again"),
        answer(a, "A again"),
    )
    assert {name: texts(one) for name, one in scenarios.items()} == {
        "hello": ["I am A", "A again"],
        "hello-2": ["I am B", "B again"],
    }
    assert played(scenarios, *hello) == ("hello", 0)
    assert played(scenarios, *a) == ("hello", 1)
    assert played(scenarios, *b) == ("hello-2", 1)


def test_conversations_with_the_same_answers_part_where_they_differ():
    """Where the first answers are equal, the next user message distinguishes the conversations."""
    hello = [user("hello")]
    a, b = ([*hello, model("hi"), user(text)] for text in ("one", "two"))
    scenarios = drafted(answer(hello, "hi"), answer(hello, "hi"), answer(a, "A"), answer(b, "B"))
    assert sorted(map(texts, scenarios.values())) == [["hi", "A"], ["hi", "B"]]
    assert played(scenarios, *a) == ("hello", 1)
    assert played(scenarios, *b) == ("hello-2", 1)


def test_the_same_conversation_twice():
    """A recording that nothing distinguishes from another is kept too. It is the second with the
    same request, as its line shows."""
    hello = [user("hello")]
    one, two = drafts([answer(hello, "one"), answer(hello, "two")])
    first, second = one.scenario.turns[0].recorded, two.scenario.turns[0].recorded
    assert first.request == second.request != ""
    assert (first.order, second.order) == (0, 1)
    assert one.scenario.match == two.scenario.match
    assert "answers the same request the 2nd time" in two.report[0].description
    assert drafted(answer(hello, "one"), answer(hello, "two")).keys() == {"hello", "hello-2"}


@for_all("name", ["look" * 20, "look up", "", "\u2028"])
@for_all("id", ["call_1", "a\nb", ""])
def test_malformed_calls_in_a_history(name, id):
    """A scenario can be loaded whatever calls the client's history contains."""
    history = [user("hello"), model(None, (id, name, "{}")), result(id, "1")]
    (scenario,) = drafted(answer(history, "yes")).values()
    assert texts(scenario)[-1] == "yes"


def test_a_conversation_that_branches():
    """Another message at the same point begins a scenario with the turns up to there."""
    hello = [user("hello")]
    other = [*hello, model("hi"), user("other")]
    scenarios = drafted(
        answer(hello, "hi"),
        answer([*hello, model("hi"), user("more")], "more"),
        answer(other, "else"),
    )
    assert {name: texts(one) for name, one in scenarios.items()} == {
        "hello": ["hi", "more"],
        "hello-2": ["hi", "else"],
    }
    fork = scenarios["hello-2"]
    assert fork.turns[0].recorded.file == scenarios["hello"].turns[0].recorded.file
    assert fork.turns[0].recorded.request == "", "the request of the first turn finds the other"
    assert fork.turns[1].recorded.request != ""
    assert played(scenarios, *other) == ("hello-2", 1)


def test_a_history_that_was_not_recorded():
    """A conversation that began before the recording begins with its last user message; the turns
    since then are written from the client's history."""
    history = [user("first"), model("answer"), user("look it up")]
    call = model(None, ("call_1", "look", '{"x": 1}'))
    messages = [*history, call, result("call_1", "42")]
    (scenario,) = drafted(answer(messages, "it is 42")).values()
    assert scenario.name == "look-it-up"
    assert scenario.turns[0].reply[0].name == "look"
    assert scenario.turns[0].recorded is None
    assert played({"x": scenario}, *messages) == ("look-it-up", 1)


def test_answers_that_the_service_keeps():
    """`previous_response_id` continues the answer with that id, among other conversations too."""
    scenarios = drafted(
        responding("hello", "resp_a", "one"),
        responding("hello", "resp_b", "two"),
        responding("more", "resp_c", "three", previous="resp_b"),
        responding("more", "resp_d", "four", previous="resp_a"),
        responding("last", "resp_e", "five", previous="resp_c"),
    )
    assert sorted(map(texts, scenarios.values())) == [["one", "four"], ["two", "three", "five"]]


def test_a_second_run_continues():
    """Scenarios of an earlier run are continued from their files."""
    hello = [user("hello")]
    known = loads(dump(next(drafts([answer(hello, "hi")])).scenario))
    draft = next(drafts([answer([*hello, model("hi"), user("more")], "yes")], known=known))
    assert draft.base == known[0]
    assert (draft.scenario.name, texts(draft.scenario)) == ("hello", ["hi", "yes"])
    assert tapes(draft)[0] is None
    assert tapes(draft)[1] is not None


def test_a_second_run_knows_the_answers_that_services_keep():
    """The ids of stored answers are read from the tapes of an earlier run."""
    first = next(drafts([responding("hello", "resp_a", "one")]))
    more = responding("more", "resp_b", "two", previous="resp_a")
    draft = next(
        drafts([more], known=loads(dump(first.scenario)), tape=lambda recorded: tapes(first)[0])
    )
    assert texts(draft.scenario) == ["one", "two"]


# Attempts


def test_retries_become_attempts():
    """The same request after HTTP errors is one turn, with the errors as its attempts."""
    hello = [user("hello")]
    (scenario,) = drafted(
        failure(hello), failure(hello, 500, "Oops", ()), answer(hello, "hi")
    ).values()
    (turn,) = scenario.turns
    assert texts(scenario) == ["hi"]
    assert [(attempt.http.status, attempt.http.retry_after) for attempt in turn.attempts] == [
        (429, 2_000_000),
        (500, None),
    ]
    assert turn.attempts[0].http.error.message == "Slow down"


def test_retries_later_in_a_conversation():
    """Later turns have attempts too, and keep their conditions."""
    hello = [user("hello")]
    more = [*hello, model("hi"), user("more")]
    (scenario,) = drafted(answer(hello, "hi"), failure(more), answer(more, "yes")).values()
    assert texts(scenario) == ["hi", "yes"]
    assert [len(turn.attempts) for turn in scenario.turns] == [0, 1]
    assert scenario.turns[1].request.user.value == "more"


def test_an_error_without_a_retry():
    """The error stays the answer of its turn."""
    (scenario,) = drafted(failure([user("hello")])).values()
    assert isinstance(scenario.turns[0].http, Http)


def test_another_request_is_no_retry():
    """Only an equal request is a retry of one that failed."""
    scenarios = drafted(failure([user("hello")]), answer([user("goodbye")], "bye"))
    assert len(scenarios) == 2


def test_a_broken_answer_is_replaced_by_a_whole_one():
    """When a request whose answer broke off is sent again, the whole answer replaces it."""
    hello = [user("hello")]
    broken = exchange(asks(*hello), text_events("on")[:1], cut="upstream")
    draft = next(drafts([broken, answer(hello, "one")]))
    assert texts(draft.scenario) == ["one"]
    assert tapes(draft)[0].exchange.cut == ""
    assert len(draft.report) == 2


# Matches


@pytest.mark.parametrize(
    ("first", "second", "condition"),
    [
        ({}, {"tools": [{"type": "function", "function": {"name": "look"}}]}, "tools"),
        ({}, {"model": "other"}, "model"),
        ({"stream": True}, {"stream": False}, "stream"),
        ({}, {"temperature": 0.5}, "body"),
        ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}, "body"),
    ],
)
def test_a_further_condition_for_another_difference(first, second, condition):
    """Requests with the same message that differ elsewhere get a condition for the difference."""
    hello = [user("hello")]
    scenarios = drafted(answer(hello, "one", **first), answer(hello, "two", **second))
    assert {name: texts(one) for name, one in scenarios.items()} == {
        "hello": ["one"],
        "hello-2": ["two"],
    }
    assert getattr(scenarios["hello-2"].match, condition) not in (None, ())
    assert played(scenarios, *hello, **first) == ("hello", 0)
    assert played(scenarios, *hello, **second) == ("hello-2", 0)


def image(data, text=""):
    """A user message with an image, and with a text where there is one."""
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return user([part, {"type": "text", "text": text}] if text else [part])


def test_images_without_text_are_matched_by_their_digests():
    """Such a message is found again where the rest of the request is another."""
    scenarios = drafted(answer([image("AAAA")], "one"), answer([image("BBBB")], "two"))
    one, two = scenarios.values()
    digest = f"sha256:{sha256(bytes(3)).hexdigest()}"
    assert one.match == Match(user_files=(digest,))
    assert played(scenarios, image("AAAA"), temperature=0) == (one.name, 0)
    assert played(scenarios, image("BBBB"), temperature=0) == (two.name, 0)


def test_a_retry_of_another_run_may_be_another_request():
    """It is the first of its kind, and not the one before that."""
    failed = next(drafts([failure([user("hello")])]))
    (retried,) = drafts(
        [answer([user("hello")], "hi", temperature=0)], known=loads(dump(failed.scenario))
    )
    assert [line.outcome for line in retried.report] == ["neutral"]
    assert retried.scenario.turns[0].recorded.order == 0


def test_images_distinguish_messages_with_one_text():
    """Only where they compete: then each gets the condition."""
    scenarios = drafted(
        answer([image("AAAA", "what?")], "one"), answer([image("BBBB", "what?")], "two")
    )
    assert [len(scenario.match.user_files) for scenario in scenarios.values()] == [1, 1]
    assert played(scenarios, image("AAAA", "what?"), temperature=0) == ("what", 0)
    assert played(scenarios, image("BBBB", "what?"), temperature=0) == ("what-2", 0)


@pytest.mark.parametrize("data", ["REDACTED-1xxxxxx", "no?base64"])
def test_an_image_that_had_a_secret_is_no_condition(data):
    """The digest of what is left of it would find no request of a client."""
    ((name, scenario),) = drafted(answer([image(data)], "one"), pattern=wildcards).items()
    assert scenario.match is None, name


def test_the_earlier_scenario_gets_the_condition_where_only_it_can():
    """A request with a system prompt gets the condition when the later one has none."""
    system = {"role": "system", "content": "You are brief."}
    hello = [user("hello")]
    scenarios = drafted(answer([system, *hello], "brief"), answer(hello, "long"))
    assert played(scenarios, system, *hello) == ("hello", 0)
    assert played(scenarios, *hello) == ("hello-2", 0)


def test_as_many_conditions_as_it_takes():
    """Each of many recordings of the same message is found by its own request."""
    hello = [user("hello")]
    tools = [{"type": "function", "function": {"name": "look"}}]
    requests = [{}, {"tools": tools}, {"model": "x"}, {"model": "x", "tools": tools}]
    scenarios = drafted(*[answer(hello, str(n), **more) for n, more in enumerate(requests)])
    for number, more in enumerate(requests):
        name, _ = played(scenarios, *hello, **more)
        assert texts(scenarios[name]) == [str(number)]


def test_the_same_message_over_two_apis():
    """The API distinguishes the recordings of two services; the first plays over all other APIs."""
    scenarios = drafted(answer([user("hello")], "one"), responding("hello", "resp_1", "two"))
    assert scenarios["hello-2"].apis == ("responses",)
    assert "responses" not in scenarios["hello"].apis
    assert played(scenarios, user("hello")) == ("hello", 0)


@pytest.mark.slow
def test_the_same_message_over_two_apis_streamed_and_not():
    """Each recording is found by its own request, in whatever order they were recorded."""
    hello = [user("hello")]
    requests = {
        "one": answer(hello, "one", stream=True),
        "two": answer(hello, "two", stream=False),
        "three": responding("hello", "resp_1", "three"),
        "four": responding("hello", "resp_2", "four", model="other"),
    }
    for order in permutations(requests):
        scenarios = drafted(*(requests[name] for name in order))
        found = {texts(scenario)[0]: name for name, scenario in scenarios.items()}
        assert played(scenarios, *hello, stream=True)[0] == found["one"]
        assert played(scenarios, *hello, stream=False)[0] == found["two"]
        for name in ("three", "four"):
            request = PROTOCOLS["responses"].parse(
                json.loads(requests[name].request_body), NO_TARGET, False
            )
            selection = select(ScenarioIndex(scenarios.values()), request, {})
            assert selection.scenario.name == found[name]


def test_rules():
    """`--match` names the conditions; without any, scenarios play when they are named."""
    system = {"role": "system", "content": "Be [brief]"}
    one = answer([system, user("hello")], "hi", model="odd-[1]")
    (narrow,) = drafted(one, match=MatchRule(("user", "system", "model"))).values()
    assert narrow.match.system == TextCondition("equals", "Be [brief]")
    assert played({"x": narrow}, system, user("hello"), model="odd-[1]") == ("hello", 0)
    (named,) = drafted(one, match=MatchRule(())).values()
    assert named.match is None


def test_texts_with_secrets_match_by_pattern():
    """The condition for a text with a secret is a pattern that matches it with the secret and with
    its placeholder."""
    (scenario,) = drafted(
        answer([user("my key is <KEY-1>")], "ok"),
        pattern=lambda text: text.replace("<KEY-1>", ".+") if "<KEY" in text else None,
    ).values()
    assert scenario.match.user == TextCondition("regex", r"\A(?:my key is .+)\Z")


def test_overwriting():
    """In a run that overwrites, a conversation with the same beginning replaces the earlier one."""
    hello = [user("hello")]
    old = next(drafts([answer(hello, "old"), answer([*hello, model("old"), user("x")], "y")]))
    drafting = Drafting(known=loads(dump(old.scenario)), overwrite=True)
    (draft,) = drafting.add(answer(hello, "new"))
    assert draft.base == old.scenario
    assert texts(draft.scenario) == ["new"]
    (again,) = drafting.add(answer(hello, "newer"))
    assert again.scenario.name == "hello-2"


# Names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What's the weather in Zürich?", "whats-the-weather-in-zurich"),
        ("  ", "chat-conversation"),
        ("你好", "chat-conversation"),
        ("x" * 200, "x" * 48),
        ("one two " * 20, "one-two-one-two-one-two-one-two-one-two-one-two"),
    ],
)
def test_names(text, name):
    """A name is readable and has only the characters that names may have."""
    assert list(drafted(answer([user(text)], "hi"))) == [name]


def test_names_in_use():
    """A number is added to a name that is in use, in an earlier run too."""
    known = loads("scenario: hello\nturns: [{reply: {text: hi}}]")
    assert list(drafted(answer([user("hello")], "a"), known=known)) == ["hello-2"]


# Requests and answers of every form


def test_requests_that_call_no_model_become_routes():
    """A look-up is a scenario with a route; what no route can be is skipped, with the reason."""
    listing = replace(answer([user("x")], "y"), method="GET")
    preflight = replace(listing, method="OPTIONS")
    draft, skipped, other = drafts([listing, preflight, answer([user("hello")], "hi")])
    assert draft.scenario.route == RouteSpec("GET", "/v1/chat/completions", "api.odd.test")
    assert draft.scenario.turns[0].answer.status == 200
    assert draft.report[0].outcome == "neutral"
    assert skipped.scenario is None
    assert "OPTIONS" in skipped.report[0].description
    assert other.report[0].scenario == "hello"


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (b'{"grammar": {"regex": "a+"}, "n": 1}', {"n": 1}),
        (b'{"regex": "a+"}', None),
        (b'{"id": "7a6c2f0e-8a5d-4a4e-9b5e-0d6d4b6f7a11"}', None),
    ],
)
def test_the_condition_of_a_route_can_be_loaded(body, condition):
    """What looks like an operator is in no condition, and neither is what each run makes up."""
    (draft,) = drafts([replace(answer([user("x")], "y"), method="PUT", request_body=body)])
    match = draft.scenario.match
    assert (match.body if match is not None else None) == condition


def test_a_difference_that_no_condition_on_a_body_can_name():
    """Two requests that differ in what looks like an operator are found by their digests."""
    grammars = ({"regex": "a+"}, {"regex": "b+"})
    exchanges = [answer([user("hello")], g["regex"], structured_outputs=g) for g in grammars]
    scenarios = drafted(*exchanges)
    assert [scenario.match.body for scenario in scenarios.values()] == [None, None]


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'{"model": 1}'])
def test_malformed_requests(body):
    """A request that cannot be parsed is skipped with a reason, or recorded; it never fails."""
    (draft,) = drafts([exchange(body, text_events("hi"))])
    assert draft.report[0].description


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [b"data: {broken\n\n"],
        [b"data: " + b"\xff\xfe" * 50],
        [b"data: [DONE]\n\n"],
        [b'data: {"error": {"message": "no"}}\n\n'],
        [*text_events("ok")[:1], b"data: 17\n\n"],
    ],
)
def test_malformed_answers(chunks):
    """The bytes are on the tape, and the file can be loaded."""
    request = asks(user("hello"))
    draft = next(drafts([exchange(request, chunks)]))
    assert loads(dump(draft.scenario)) == (draft.scenario,)
    assert b"".join(p.data for p in tapes(draft)[0].exchange.chunks) == b"".join(chunks)


def test_bodies():
    """An answer that is not streamed is a turn without times."""
    (scenario,) = drafted(responding("hello", "resp_1", "one")).values()
    assert texts(scenario) == ["one"]
    assert scenario.turns[0].timing is None


@pytest.mark.parametrize("ids", [("call_1", ""), ("", "call_1"), ("", ""), ("call_2", "")])
def test_some_call_ids_may_be_absent(ids):
    """A client that leaves out ids of calls continues the conversation, whichever it leaves out."""
    function = {"name": "look", "arguments": "{}"}
    calls = [{"index": n, "id": f"call_{n + 1}", "function": function} for n in range(2)]
    events = [delta(0, role="assistant", tool_calls=calls), finish("tool_calls"), "[DONE]"]
    called = exchange(asks(user("hello")), [f"data: {event}\n\n".encode() for event in events])
    results = [result(id, "x") for id in ids]
    more = [user("hello"), model(None, *[(id, "look", "{}") for id in ids]), *results]
    (scenario,) = drafted(called, answer(more, "yes")).values()
    assert (len(scenario.turns), scenario.any_ids) == (2, False)


def test_call_ids_that_are_used_again():
    """Services that number the calls of each answer from 0 do not make files that cannot be
    loaded."""
    hello = [user("hello")]
    second = [*hello, model(None, ("call_0", "look", "{}")), result("call_0", "1")]
    (scenario,) = drafted(calling(hello, "call_0"), calling(second, "call_0")).values()
    assert [turn.reply[0].id for turn in scenario.turns] == ["call_0", None]
    third = [*second, model(None, ("call_0", "look", "{}")), result("call_0", "2")]
    scenarios = drafted(*[calling(m, "call_0") for m in (hello, second)], answer(third, "done"))
    assert played(scenarios, *third) == ("hello", 2)


@pytest.mark.slow
def test_a_very_long_answer_is_one_text():
    """The file has the text, cut into about as many fragments; the tape has every chunk."""
    deltas = [f"word{n} " for n in range(10_000)]
    (scenario,) = drafted(answer([user("hello")], *deltas)).values()
    assert texts(scenario) == ["".join(deltas)]
    assert scenario.turns[0].reply[0].split == 9


def test_other_headers_are_kept_with_errors():
    """An error keeps its headers, except those of the body."""
    headers = (*JSON, ("x-ratelimit-reset", "1s"), ("content-length", "2"), ("retry-after", "1"))
    (scenario,) = drafted(exchange(asks(user("hi")), [b"{}"], 503, headers)).values()
    assert scenario.turns[0].http.headers == (("x-ratelimit-reset", "1s"),)
    assert scenario.turns[0].http.retry_after == 1_000_000


# What differs from run to run


def second_run(*exchanges, old, match=None, **options):
    """The drafts of a second run into the folder of `old` drafts."""
    recorded = {file: turn.tape for draft in old for file, turn in draft.recorded.items()}
    known = loads("---\n".join(dump(draft.scenario) for draft in old))
    options |= {"match": match} if match else {}
    return list(
        drafts(exchanges, known=known, tape=lambda found: recorded.get(found.file), **options)
    )


NOON, NIGHT = "2026-01-01T12:00:00Z", "2026-01-02T23:59:59Z"
ONE, TWO = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "ab")


def test_a_second_run_that_differs_only_in_times():
    """Both recordings ignore the times from then on, and are two answers to one request."""
    old = list(drafts([answer([user(f"it is {NOON}, and?")], "a")]))
    changed, new = second_run(answer([user(f"it is {NIGHT}, and?")], "b"), old=old)
    assert [draft.scenario.match.ignore for draft in (new, changed)] == [("timestamp",)] * 2
    first, second = (draft.scenario.turns[0].recorded for draft in (changed, new))
    assert (first.request, first.ignore) == (second.request, second.ignore)
    assert (first.order, second.order) == (0, 1)
    assert new.report[0].description == (
        "turn 1 of it-is-2026-01-02t23-59-59z-and; answers the same request the 2nd time; the "
        f"request of {changed.scenario.name} but for timestamp, which both ignore now"
    )
    scenarios = {draft.scenario.name: draft.scenario for draft in (new, changed)}
    assert loads("---\n".join(map(dump, scenarios.values()))) == tuple(scenarios.values())
    for time in (NOON, NIGHT, "2030-05-05 05:05"):
        assert played(scenarios, user(f"it is {time}, and?")) == (changed.scenario.name, 0)


def test_a_third_run_is_one_more_answer():
    """What is ignored already is not a finding again."""
    old = list(drafts([answer([user(f"it is {NOON}")], "a")]))
    both = second_run(answer([user(f"it is {NIGHT}")], "b"), old=old)
    whole = [replace(both[0], recorded=old[0].recorded), both[1]]
    (third,) = second_run(answer([user("it is 2026-03-03 03:03")], "c"), old=whole)
    assert third.scenario.turns[0].recorded.order == 2


def test_a_second_run_goes_on():
    """Later turns of it are found by the beginning without what is ignored."""
    hello = [user(f"run {ONE}")]
    old = list(drafts([answer(hello, "a"), answer([*hello, model("a"), user(f"{ONE}?")], "b")]))
    again = [user(f"run {TWO}")]
    (changed, new) = second_run(
        answer(again, "a"), answer([*again, model("a"), user(f"{TWO}?")], "c"), old=old
    )
    assert (texts(changed.scenario), texts(new.scenario)) == (["a", "b"], ["a", "c"])
    assert new.scenario.match.ignore == ("uuid",)
    digests = [[turn.recorded.request for turn in draft.scenario.turns] for draft in (changed, new)]
    assert digests[0] == digests[1]


@for_all(
    "sent",
    [
        [[user(f"it is {NIGHT}!")]],  # differs elsewhere
        [[{"role": "system", "content": "x"}, user(f"it is {NIGHT}")]],
    ],
)
def test_a_second_run_that_differs_elsewhere(sent):
    """Nothing is ignored."""
    old = list(drafts([answer([user(f"it is {NOON}")], "a")]))
    found = second_run(*(answer(messages, "b") for messages in sent), old=old)
    assert [draft.scenario.match.ignore for draft in found] == [()]


def test_one_run_that_differs_in_times():
    """Two requests of one run, or two recordings of the earlier one, are different on purpose."""
    sent = [answer([user(f"it is {time}")], "a") for time in (NOON, NIGHT)]
    old = list(drafts(sent))
    assert [draft.scenario.match.ignore for draft in old] == [(), ()]
    (third,) = second_run(answer([user("it is 2026-03-03 03:03")], "c"), old=old)
    assert third.scenario.match.ignore == ()


def test_overwriting_what_differs_in_times():
    """A run that overwrites replaces the conversation, which ignores the times then."""
    old = list(drafts([answer([user(f"it is {NOON}")], "a")]))
    found = second_run(answer([user(f"it is {NIGHT}")], "b"), old=old, overwrite=True)
    last = {draft.scenario.name: draft.scenario for draft in found}
    ((name, scenario),) = last.items()
    assert (name, texts(scenario), scenario.match.ignore) == (
        old[0].scenario.name,
        ["b"],
        ("timestamp",),
    )


def test_what_a_run_ignores_is_written():
    """With the option both the `match` and the digest have it, and only other parts compete."""
    rule = MatchRule(ignore=("timestamp",))
    one, two = (answer([user(f"it is {time}")], time) for time in (NOON, NIGHT))
    scenarios = drafted(one, two, answer([user(f"was it {NOON}?")], "c"), match=rule)
    assert {scenario.match.ignore for scenario in scenarios.values()} == {("timestamp",)}
    recorded = [scenario.turns[0].recorded for scenario in scenarios.values()]
    assert [found.order for found in recorded] == [0, 1, 0]
    assert recorded[0].request == recorded[1].request
    assert played(scenarios, user("was it 2029-09-09T09:09?"))[0].startswith("was")
