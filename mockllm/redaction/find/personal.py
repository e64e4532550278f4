"""Numbers that belong to persons: telephone, bank account, card, social security.

They are off unless a user switches them on, because many other numbers look the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_Span = tuple[int, int]

# With `+` and the country, as E.164 has it, or as it is written in North America.
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+[1-9]\d{0,2}(?:[ ./-]?\(\d{1,5}\))?(?:[ ./-]?\d{1,5}){2,7}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[.-]\d{3}[.-]\d{4})(?![\w-])"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")
_CARD = re.compile(r"(?<![\d.-])[2-6]\d(?:[ -]?\d){11,17}(?![\d-])")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")


def _phones(text: str) -> Iterator[_Span]:
    for found in _PHONE.finditer(text):
        number = found[0]
        # Another number may come after it.
        while _digits(number) > _LONGEST_PHONE and _LAST_GROUP.search(number):
            number = _LAST_GROUP.sub("", number)
        if _SHORTEST_PHONE <= _digits(number) <= _LONGEST_PHONE:
            yield found.start(), found.start() + len(number)


_SHORTEST_PHONE, _LONGEST_PHONE = 8, 15
_LAST_GROUP = re.compile(r"[ ./-]\d+\Z")


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))


def _ibans(text: str) -> Iterator[_Span]:
    """ISO 13616: the number has a check sum, so that it ends where that is right."""
    for found in _IBAN.finditer(text):
        for end in range(found.end(), found.start() + 14, -1):
            value = text[found.start() : end].replace(" ", "")
            next_one = text[end : end + 1]
            whole = not (next_one.isalnum() or text[end - 1] == " ")
            if whole and len(value) >= 15 and _is_iban(value):
                yield found.start(), end
                break


def _is_iban(value: str) -> bool:
    moved = value[4:] + value[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def _cards(text: str) -> Iterator[_Span]:
    for found in _CARD.finditer(text):
        if _is_card(re.sub(r"\D", "", found[0])):
            yield found.span()


def _is_card(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B: the formula of Luhn."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0 and len(set(digits)) > 1


def _social_security(text: str) -> Iterator[_Span]:
    return (found.span() for found in _SSN.finditer(text))


PERSONAL: dict[str, Callable[[str], Iterator[_Span]]] = {
    "phone": _phones,
    "IBAN": _ibans,
    "card": _cards,
    "SSN": _social_security,
}
"""For each kind what finds it in a text."""
