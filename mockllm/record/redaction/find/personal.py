"""E-mail addresses, and numbers that belong to persons: telephone, bank account, card, social
security.

The numbers are off unless a user switches them on, because many other numbers look the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

from mockllm.record.redaction.find.secret_names import NAMES

_Span = tuple[int, int]

# E-mail addresses, those with letters of any language too

# Letters but Thai, Lao, Burmese and, from the radicals of Chinese on, Chinese, Japanese, Korean.
_SPACED_LETTER = (
    r"[^\W_\x00-\x7f\u0e00-\u0eff\u1000-\u109f\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef"
    r"\U00010000-\U0010ffff]"
)
_SPACED = re.compile(rf"(?:[A-Za-z0-9._%+'-]|[\u0300-\u036f]|{_SPACED_LETTER})*")
_LETTERS = re.compile(r"[^\W_]*")
_DOMAIN = re.compile(r"@[^\W_](?:[\w-]{0,62})(?:\.[^\W_][\w-]{0,62}){1,10}")
_LABEL = re.compile(r"xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,63}|[^\W\d_\x00-\x7f]{2,63}")
_LONGEST_LOCAL = 128
# What follows is a password, not the name of a mailbox.
_USER = re.compile(r"://[^\s/@]*:\Z")


def emails(text: str) -> Iterator[_Span]:
    """Where e-mail addresses are in a text; `git@` in the address of a repository is no person."""
    if "@" not in text or "\0" in text:
        return
    for found in _DOMAIN.finditer(text):
        end = _end_of_domain(found[0])
        before = text[max(0, found.start() - _LONGEST_LOCAL) : found.start()]
        local = _mailbox(before) if end else ""
        if local and local != "git" and not _USER.search(before[: len(before) - len(local)]):
            yield found.start() - len(local), found.start() + end


def _end_of_domain(text: str) -> int:
    """Where a domain at the beginning of a text ends, after the last top-level domain that there
    is; 0 where there is none, as in `@agent.tool`."""
    labels = text.split(".")
    for index in range(len(labels) - 1, 0, -1):
        size = _top_level(labels[index])
        if size:
            return len(".".join(labels[:index])) + 1 + size
    return 0


def _top_level(label: str) -> int:
    """The length of the top-level domain in a label; what follows belongs to the text after it."""
    found = _LABEL.match(label)
    if found is None:
        return 0
    name = found[0]
    if name.lower() in _top_levels():
        return len(name)
    if name.isascii():
        lower = len(name) - len(name.lstrip(_LOWER))
        return lower if name[:lower] in _top_levels() else 0
    # A text without spaces goes on after the domain.
    ends = range(len(name), 1, -1)
    return next((end for end in ends if name[:end].lower() in _top_levels()), 0)


_LOWER = "abcdefghijklmnopqrstuvwxyz"


@cache
def _top_levels() -> frozenset[str]:
    """All top-level domains, those of other scripts in both forms."""
    file = files(__package__ or "") / "top_level_domains.txt"
    names = file.read_text(encoding="ascii").partition("\n")[2].split()
    other = (name[4:].encode().decode("punycode") for name in names if name[:4] == "xn--")
    return frozenset(names).union(other, NAMES["internal domains"])


def is_address(text: str) -> bool:
    """Whether a text is an e-mail address and nothing else."""
    return next(emails(text), None) == (0, len(text))


def _mailbox(before: str) -> str:
    """The name of the mailbox at the end of a text.

    Words of some languages have no space between them, so that a sentence would end in the name.
    Their letters count only where no others are next to the sign.
    """
    local = _at_end(_SPACED, before).lstrip("'.%")
    return local or _at_end(_LETTERS, before)


def _at_end(pattern: re.Pattern[str], text: str) -> str:
    """The match of a pattern at the end of a text; it is read backwards, to take linear time."""
    found = pattern.match(text[::-1])
    return found[0][::-1] if found is not None else ""


# Numbers

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
