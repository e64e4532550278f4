"""The queue of exchanges that wait to be written: in order, and bounded."""

import threading

from mockllm.serve.server.recording.recorder import ExchangeQueue
from tests.record.recording.exchanging import answer, user
from tests.timeouts import GIVE_UP


def exchange(text="hello"):
    return answer([user(text)], "hi")


def numbers(group):
    return [number for number, _ in group]


def test_groups_come_in_order_and_stay_until_they_are_done():
    """A group is given again until it is done; no group has more than 32."""
    queue = ExchangeQueue(1_000_000)
    for number in range(40):
        assert queue.put(number, exchange())
    assert numbers(queue.next_group()) == list(range(32))
    queue.mark_done(30, "")
    assert numbers(queue.next_group()) == list(range(30, 40))
    queue.mark_done(10, "")
    queue.close()
    assert queue.next_group() == ()


def test_it_waits_for_exchanges():
    """A thread that asks for a group gets it when there is one."""
    queue = ExchangeQueue(1_000_000)
    given = []
    thread = threading.Thread(target=lambda: given.append(queue.next_group()))
    thread.start()
    queue.put(1, exchange())
    thread.join(GIVE_UP)
    assert numbers(given[0]) == [1]


def test_it_is_full_when_too_many_bytes_wait():
    """It counts the bytes of what waits; more room is there when some are done."""
    queue = ExchangeQueue(10_000)
    queue.put(1, exchange("x" * 9_000))
    assert not queue.is_full
    queue.put(2, exchange("x" * 9_000))
    assert queue.is_full
    queue.mark_done(1, "")
    assert not queue.is_full


def test_nobody_waits_for_an_obstacle():
    """If nothing can be written it is not full, but keeps no more than so many bytes."""
    queue = ExchangeQueue(1_000)
    queue.put(1, exchange("x" * 2_000))
    queue.mark_done(0, "it cannot be written: the disk is full")
    assert not queue.is_full
    assert not queue.put(2, exchange())
    assert queue.count == 1


def test_what_met_an_obstacle_is_given_again():
    """After the next exchange, and once at the end; what is left then can be taken out."""
    queue = ExchangeQueue(1_000_000)
    queue.put(1, exchange())
    queue.next_group()
    queue.mark_done(0, "it cannot be written: the disk is full")
    queue.put(2, exchange())
    assert numbers(queue.next_group()) == [1, 2]
    queue.mark_done(0, "it cannot be written: the disk is full")
    queue.close()
    assert numbers(queue.next_group()) == [1, 2]
    queue.mark_done(0, "it cannot be written: the disk is full")
    assert queue.next_group() == ()
    assert numbers(queue.rest()) == [1, 2]
    assert queue.count == 0
