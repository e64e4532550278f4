"""Which scenarios compete for the requests of another one."""

from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.recording.finding import Competing
from mockllm.scenario.model import Match, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import PausePart
from mockllm.scenario.route_model import RouteSpec

TURNS = (TurnSpec(reply=(PausePart(0),)),)
users = st.none() | st.builds(
    TextCondition, st.sampled_from(["equals", "contains"]), st.sampled_from(["a", "b"])
)
matches = st.none() | st.builds(lambda user: Match(user=user), users)
scenarios = st.builds(
    lambda name, match, route: Scenario(name, TURNS, match=match, route=route),
    st.sampled_from("uvwxyz"),
    matches,
    st.none() | st.sampled_from([RouteSpec("POST", "/a"), RouteSpec("POST", "/b")]),
)


def competes(one: Scenario, other: Scenario) -> bool:
    """Whether a request that `other` was recorded from may find `one`, looked at alone."""
    alone = Competing([one])
    return alone.of(other) == (one,)


@given(st.lists(scenarios, max_size=8), scenarios)
def test_the_scenarios_that_compete(others: list[Scenario], written: Scenario) -> None:
    """Of many scenarios those are found that compete when each is looked at alone, in their order,
    as they were last kept."""
    found = Competing(others).of(written)
    last = {scenario.name: scenario for scenario in others}
    assert found == tuple(kept for kept in last.values() if competes(kept, written))


def test_what_competes() -> None:
    """A scenario does not compete with itself, with another text, or with another route. One
    without a condition competes with all."""
    hello, hello_too, other, free = (
        Scenario(name, TURNS, match=match)
        for name, match in (
            ("hello", Match(user=TextCondition("equals", "hello"))),
            ("hello-2", Match(user=TextCondition("equals", "hello"))),
            ("other", Match(user=TextCondition("equals", "other"))),
            ("free", None),
        )
    )
    route = Scenario("route", TURNS, route=RouteSpec("POST", "/v1/embeddings"))
    competing = Competing([hello, hello_too, other, free, route])
    assert [other.name for other in competing.of(hello)] == ["hello-2", "free"]
    assert [other.name for other in competing.of(free)] == ["hello", "hello-2", "other"]
    assert competing.of(route) == ()
