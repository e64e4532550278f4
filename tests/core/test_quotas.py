"""Buckets: what may be taken from them, and how they fill."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.quotas import FULL, Charge, Fill, Level, Limit, excess_of, take

LIMITS = st.builds(
    Limit,
    st.sampled_from(["requests", "tokens"]),
    st.integers(1, 10_000),
    st.sampled_from([1.0, 7.0, 60.0, 86400.0]),
)


def charge(amount: int = 1, limit: Limit | None = None) -> Charge:
    return Charge("a bucket", limit or Limit("requests", 3), amount)


@given(LIMITS, st.floats(0, 2e9))
def test_a_full_bucket_grants_exactly_its_limit(limit: Limit, now: float) -> None:
    """At one moment, so many requests get through and no other one."""
    fill = FULL
    for _ in range(min(limit.amount, 500)):
        taken = take([fill], [charge(1, limit)], now)
        assert taken.granted
        fill = Fill(taken.used[0], now)
    assert take([fill], [charge(1, limit)], now).granted is (limit.amount > 500)


@given(LIMITS, st.integers(0, 20_000), st.data())
def test_who_waits_as_told_gets_through(limit: Limit, owed: int, data: st.DataObject) -> None:
    """After the wait of a refusal there is enough, at any later time too; just before there is
    not."""
    now = data.draw(st.floats(1e9, 2e9))
    asked = charge(data.draw(st.integers(0, limit.amount)), limit)
    fill = Fill(take([FULL], [charge(owed, limit)], now, force=True).used[0], now)
    taken = take([fill], [asked], now)
    if taken.granted:
        return
    excess = excess_of(taken.used, [asked], "m")
    assert excess.wait is not None
    assert take([fill], [asked], now + excess.wait + data.draw(st.floats(0, 1e6))).granted
    early = now + excess.wait - 0.0015
    if early > now:
        assert not take([fill], [asked], early).granted


def test_it_fills_evenly() -> None:
    """A third of the time is one of three requests."""
    fill = Fill(3, 100.0)
    assert not take([fill], [charge()], 119.9).granted
    taken = take([fill], [charge()], 120.0)
    assert (taken.granted, taken.used) == (True, (3.0,))
    assert take([fill], [charge(2)], 140.0).used == (3.0,)
    assert take([fill], [charge(0)], 1000.0).used == (0.0,)


def test_all_or_none() -> None:
    """Where one bucket has too little, nothing is taken from the others."""
    fills = [FULL, Fill(90, 10.0)]
    asked = [charge(), charge(20, Limit("tokens", 100))]
    taken = take(fills, asked, 10.0)
    assert (taken.granted, taken.used) == (False, (0.0, 90.0))
    excess = excess_of(taken.used, asked, "m")
    assert (excess.limit.resource, excess.used, excess.requested) == ("tokens", 90, 20)
    assert excess.wait == 6.0


def test_what_is_owed_is_taken_in_any_case() -> None:
    """A bucket may hold less than nothing; then an amount of 0 has to wait, too."""
    limit = Limit("output-tokens", 60)
    fill = Fill(take([FULL], [charge(90, limit)], 5.0, force=True).used[0], 5.0)
    later = take([fill], [charge(0, limit)], 5.0)
    assert not later.granted
    assert excess_of(later.used, [charge(0, limit)], "m").wait == 31.0
    assert Level(limit, fill.used, 5.0).remaining == 0


def test_more_than_the_limit_never_gets_through() -> None:
    """There is no time to wait for."""
    asked = [charge(), charge(200, Limit("tokens", 100))]
    taken = take([Fill(3, 0), FULL], asked, 0.0)
    assert excess_of(taken.used, asked, "m").wait is None


def test_a_clock_that_is_behind_changes_nothing() -> None:
    """Clocks of several machines differ a little."""
    assert Fill(2, 100.0).used_at(99.0, Limit("requests", 3)) == 2
    assert Level(Limit("requests", 3), 2.0, 100.0).reset_at == 140.0


def test_periods_in_words() -> None:
    """As messages have them."""
    periods = [Limit("requests", 1, seconds).period for seconds in (1, 60.0, 3600.0, 86400, 90.0)]
    assert periods == ["second", "minute", "hour", "day", "90s"]
