"""Numbers of persons: found where a user switches them on, with their check sums."""

from __future__ import annotations

import pytest

from mockllm.record.redaction.find.patterns import Detector, kinds
from mockllm.record.redaction.find.personal import PERSONAL
from tests.cases import for_all

ON = Detector(frozenset(("phone", "iban", "card", "ssn")))


def found(text: str, detector: Detector = ON) -> list[tuple[str, str]]:
    return [(kind, text[slice(*span)]) for kind, span in detector.find(text)]


@for_all(
    ("text", "kind", "secret"),
    [
        ("call +41 44 668 18 00 now", "phone", "+41 44 668 18 00"),
        ("call +14155552671.", "phone", "+14155552671"),
        ("(415) 555-2671", "phone", "(415) 555-2671"),
        ("+41 44 668 18 00 4242 4242", "phone", "+41 44 668 18 00 4242"),
        ("415-555-2671", "phone", "415-555-2671"),
        ("to DE89 3704 0044 0532 0130 00 today", "IBAN", "DE89 3704 0044 0532 0130 00"),
        ("GB82WEST12345698765432", "IBAN", "GB82WEST12345698765432"),
        ("CH9300762011623852957 AND MORE", "IBAN", "CH9300762011623852957"),
        ("4242 4242 4242 4242", "card", "4242 4242 4242 4242"),
        ("5555555555554444,", "card", "5555555555554444"),
        ("378282246310005", "card", "378282246310005"),
        ("SSN 078-05-1120.", "SSN", "078-05-1120"),
    ],
)
def test_a_number_of_a_person(text: str, kind: str, secret: str) -> None:
    """All of it, and it stays without the switch."""
    assert (kind, secret) in found(text)
    assert found(text, Detector()) == []


@pytest.mark.parametrize(
    "text",
    [
        "4242 4242 4242 4243",
        "DE89 3704 0044 0532 0130 02",
        "000-05-1120",
        "666-05-1120",
        "900-05-1120",
        "078-00-1120",
        "12+34 56 78 90 12",
        "2026-11-22",
        "id 1234567890123456",
    ],
)
def test_a_number_that_is_none(text: str) -> None:
    """A wrong check sum, a number that is never given, a date."""
    assert found(text) == []


def test_personal_kinds_are_off_by_default() -> None:
    """All others are on."""
    off = [kind for kind, on in kinds().items() if not on]
    assert off == [kind.lower() for kind in PERSONAL]
