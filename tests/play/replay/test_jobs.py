"""How far a job is follows from its polls, its time and its cancellation alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.jobs import JobProgress
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.route_model import Pending


def made(at: float) -> Exchange:
    return Exchange(Received("POST", "/jobs", {}, at=at))


def at(session: Session, created: Exchange, pending: Pending, now: float = 0.0) -> JobProgress:
    return JobProgress(session, "job", created, pending, now, 1.0)


@given(st.integers(0, 9), st.lists(st.sampled_from(["poll", "look", "cancel"]), max_size=20))
def test_polls_are_counted(polls: int, steps: list[str]) -> None:
    """A job is pending until it was polled so often; other looks do not count, and only what is
    pending is cancelled, for good."""
    session, pending, created = Session("s"), Pending(polls=polls), made(1.0)
    came, cancelled = 0, False
    for step in steps:
        expected = "cancelled" if cancelled else "done" if came >= polls else "pending"
        progress = at(session, created, pending, 1.0)
        if step == "cancel":
            cancelled = cancelled or expected == "pending"
            assert progress.cancel() == ("cancelled" if cancelled else expected)
        else:
            assert progress.state(polled=step == "poll") == expected
            came += step == "poll"


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_time_goes_by(duration: int, waited: int, speed: float) -> None:
    """A job is done when its time is over; the speed divides that, and 0 leaves it out."""
    now = waited / 1_000_000
    progress = JobProgress(Session("s"), "job", made(0.0), Pending(duration=duration), now, speed)
    over = not speed or now * 1_000_000 * speed >= duration
    assert progress.state() == ("done" if over else "pending")


def test_a_later_job_of_the_same_id_begins_anew() -> None:
    """The ids of responses follow from their turn, so that one may come again."""
    session, pending = Session("s"), Pending(polls=1)
    for created in (made(1.0), made(2.0)):
        progress = at(session, created, pending, 9.0)
        assert [progress.state(polled=True) for _ in range(2)] == ["pending", "done"]
