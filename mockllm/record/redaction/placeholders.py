"""The placeholder of a secret, a numbered word that shows its kind; and how, in texts and timed
bytes.

A placeholder is made from nothing but the kind of the secret and a number, counted by first
appearance. From a hash anyone could find out, by trying, which e-mail address it replaces. It is
never shorter than the secret, so that no fragment of a stream that held a part of the secret
becomes empty. A longer one is filled up to a multiple of 16, so that its length reveals little.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from mockllm.core.http import TimedBytes
from mockllm.play.matching.hidden import HIDDEN_ADDRESS, MAIL_DOMAIN, REDACTED_WORD
from mockllm.record.redaction.find.bodies import Edit, Moved, edit_text
from mockllm.record.redaction.find.secret_names import NAMES
from mockllm.record.redaction.find.spans import Found, View, base64_runs

PREFIXES: tuple[str, ...] = tuple(NAMES["prefixes"])
"""What the keys of well-known services begin with. It is no secret, and stays."""

_STEP = 16
_PREFIX = "|".join(map(re.escape, sorted(PREFIXES, key=len, reverse=True)))
_ANY = re.compile(rf"(?:{_PREFIX})?{REDACTED_WORD}|{HIDDEN_ADDRESS}")
_ONLY = re.compile(rf"(?:{_ANY.pattern})+")
_OF_OTHERS = re.compile(
    rf"(?:{_PREFIX})?(?:<[A-Z][A-Z_]*>|\[[A-Z][A-Z_]*\]|\{{\{{[A-Z][A-Z_]*\}}\}}"
    r"|(?:[A-Z]+_)*(?:DUMMY|FILTERED|MASKED|REDACTED|SCRUBBED)(?:_[A-Z]+)*)"
)
"""As in `<OPENAI_API_KEY>` and `SCRUBBED_TOKEN`: capitals alone, which no key is made of."""

_SHORTEST = len("REDACTED-1")
_NUMBER = re.compile(r"(REDACTED|hidden)-(\d+)")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")


def is_placeholder(text: str) -> bool:
    """Whether a text is nothing but placeholders."""
    return text == "REDACTED" or _ONLY.fullmatch(text) is not None


def is_placeholder_of_others(text: str) -> bool:
    """Whether a text is the placeholder of another recorder, and so no secret."""
    return _OF_OTHERS.fullmatch(text) is not None


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """Where placeholders are in a text."""
    return [found.span() for found in _placeholders_in(text)]


def _placeholders_in(text: str) -> Iterable[re.Match[str]]:
    # Most texts have none, which takes a hundredth of the time of the expression.
    return _ANY.finditer(text) if "REDACTED-" in text or "hidden-" in text else ()


def placeholder_kinds(texts: Iterable[str]) -> Counter[str]:
    """The number of different placeholders in some texts, by what they replaced: `e-mail address`,
    the beginning of a well-known key (`sk-proj-`), or `secret`."""
    found = {match[0] for text in texts for match in _placeholders_in(text)}
    return Counter(
        "e-mail address"
        if placeholder.startswith("hidden")
        else placeholder.partition("REDACTED")[0] or "secret"
        for placeholder in found
    )


class Placeholders:
    """Gives each secret its placeholder, the same for the same secret.

    Args:
        reserved: texts whose placeholders belong to other secrets and are not given again.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._given: dict[str, str] = {}
        self._last = {"REDACTED": 0, "hidden": 0}
        for text in reserved:
            for word, number in _NUMBER.findall(text):
                self._last[word] = max(self._last[word], int(number))

    @property
    def known(self) -> tuple[str, ...]:
        """The secrets that have a placeholder."""
        return tuple(self._given)

    def copy(self) -> Placeholders:
        """The same so far; what is added to one is not added to the other."""
        copy = Placeholders()
        copy._given.update(self._given)
        copy._last.update(self._last)
        return copy

    def give(self, secret: str) -> str:
        """The placeholder of a secret."""
        email = _EMAIL.fullmatch(secret) is not None
        key = secret.lower() if email else secret
        if key not in self._given:
            self._given[key] = self._new(key, email)
        return self._given[key]

    def _new(self, secret: str, email: bool) -> str:
        word = "hidden" if email else "REDACTED"
        self._last[word] += 1
        before = f"{word}-{self._last[word]}"
        after = MAIL_DOMAIN if email else ""
        if not email:
            before = next((p for p in PREFIXES if secret.startswith(p)), "") + before
        length = len(before) + len(after)
        if len(secret) > length:
            before += "x" * (-(-len(secret) // _STEP) * _STEP - length)
        return before + after


def proportional_parts(text: str, sizes: Sequence[int]) -> list[str]:
    """A text cut in parts in proportion to `sizes`; none is empty if the text is long enough."""
    total, count = sum(sizes), len(sizes)
    ends, sum_ = [], 0
    for size in sizes:
        sum_ += size
        ends.append(len(text) * sum_ // total if total else len(text))
    spread_out(ends, [True] * count)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def spread_out(ends: list[int], filled: Sequence[bool]) -> None:
    """Moves the ends of adjacent parts so that those to be `filled` are not empty, as far as the
    whole, whose end stays, is long enough."""
    least, lows = 0, []
    for fill in filled:
        least += fill
        lows.append(least)
    if not ends or ends[-1] < least:
        return
    rest = 0
    for index in range(len(ends) - 1, -1, -1):
        ends[index] = min(ends[index], ends[-1] - rest) if rest else ends[index]
        rest += filled[index]
    last = 0
    for index, fill in enumerate(filled):
        ends[index] = last = max(ends[index], last + fill)


def wildcards(text: str) -> str | None:
    """A regular expression for a text in which each placeholder may be anything of its kind;
    None where it has no placeholder."""
    if len(text) < _SHORTEST:
        return None
    wild = [(*found.span(), _wildcard(found[0])) for found in _placeholders_in(text)]
    wild += [(run.start, run.end, r"\S+") for run in base64_runs(text) if _ANY.search(run.text)]
    parts: list[str] = []
    last = 0
    for start, end, wildcard in sorted(wild):
        if parts and start == last:
            parts[-1] = r"(?s:.+?)"
        else:
            parts += [re.escape(text[last:start]), wildcard]
        last = end
    return "".join([*parts, re.escape(text[last:])]) if parts else None


def _wildcard(placeholder: str) -> str:
    """A regular expression for a secret with such a placeholder, or for a part of it."""
    return r"(?s:.+?)" if placeholder.startswith("REDACTED") else r"\S+"


def edits(found: Iterable[Found], placeholders: Placeholders) -> list[Edit]:
    """The edits that remove what was found, in the order of the text.

    Where two secrets overlap, the later one gets what the earlier one leaves. The placeholder of a
    secret that is cut is cut in proportion.
    """
    covered: list[tuple[int, int]] = []
    result: list[Edit] = []
    for secret in found:
        parts = [rest for part in secret.parts for rest in _uncovered_parts(part, covered)]
        if not parts:
            continue
        for part in parts:
            covered.insert(bisect_left(covered, part), part)
        sizes = [end - start for start, end in parts]
        texts = proportional_parts(_replacement(secret, placeholders), sizes)
        result += [Edit(*part, text) for part, text in zip(parts, texts, strict=True)]
    return sorted(result)


def _uncovered_parts(
    part: tuple[int, int], covered: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    start, end = part
    rest = []
    index = bisect_left(covered, (start, start))
    if index and covered[index - 1][1] > start:
        index -= 1
    while index < len(covered) and covered[index][0] < end:
        if start < covered[index][0]:
            rest.append((start, covered[index][0]))
        start = max(start, covered[index][1])
        index += 1
    return [*rest, (start, end)] if start < end else rest


def _replacement(found: Found, placeholders: Placeholders) -> str:
    if found.inner is None:
        return found.fixed or placeholders.give(found.secret)
    run, inner = found.inner
    return run.edit(edits(inner, placeholders))


def edited_view(text: str, changes: Sequence[Edit]) -> View:
    """A text with edits made, which must be in its order, and where its characters were."""
    starts: list[int] = []
    last = 0
    for change in changes:
        starts += [*range(last, change.start), *[change.start] * len(change.text)]
        last = change.end
    return View(edit_text(text, changes), [*starts, *range(last, len(text) + 1)])


def recut(
    chunks: Sequence[TimedBytes], moved: Sequence[Moved], data: bytes
) -> tuple[TimedBytes, ...]:
    """Edited bytes cut where the chunks were cut; none that had bytes becomes empty if there are
    enough.

    Args:
        moved: which of their bytes changed.
        data: the bytes afterwards.
    """
    ends, end = [], 0
    for chunk in chunks:
        end += len(chunk.data)
        ends.append(_new_end(end, moved))
    spread_out(ends, [bool(chunk.data) for chunk in chunks])
    cuts = zip([0, *ends], ends, chunks, strict=False)
    return tuple(TimedBytes(chunk.at, data[start:end]) for start, end, chunk in cuts)


def _new_end(end: int, spans: Sequence[Moved]) -> int:
    """The place of an end in the edited bytes."""
    shift = 0
    for start, stop, size in spans:
        if end <= start:
            break
        if end < stop:
            return start + shift + size * (end - start) // (stop - start)
        shift += size - (stop - start)
    return end + shift


def with_length(
    headers: tuple[tuple[str, str], ...], size: int | None, change: int | None = None
) -> tuple[tuple[str, str], ...]:
    """Headers with the right `content-length`, where they have one.

    Args:
        size: the new length, in bytes.
        change: by how many bytes it changes instead, for a body that was cut. Without either the
            header is left out.
    """
    result = []
    for name, value in headers:
        if name.lower() == "content-length":
            if size is None and (change is None or not value.isdigit()):
                continue
            value = str(size if size is not None else int(value) + (change or 0))
        result.append((name, value))
    return tuple(result)
