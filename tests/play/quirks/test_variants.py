"""Every variant of a quirk is a change of its own in each protocol in which the kit plays it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256

import pytest

from mockllm.checking.cases.build import changes
from mockllm.checking.cases.compile import forms
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.samples import LONG_TEXT, NOT_OFFERED, SAMPLES
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.quirks.meaning import MEANINGS
from tests.play.quirks.playing import plain, play

SMALL = tuple(sample for sample in (*SAMPLES.values(), NOT_OFFERED) if sample is not LONG_TEXT)

FORMS = [
    pytest.param(form.quirk, form.variant, api, id=f"{form.name}-{api}")
    for api in PROTOCOLS
    for form in forms(api, QUIRKS.values())
]
ELSEWHERE = [
    pytest.param(quirk, variant, api, id=f"{quirk.name}:{variant.name}-{api}")
    for quirk in QUIRKS.values()
    for variant in quirk.variants
    for api in quirk.apis
    if not variant.changes(api)
]


@cache
def _plain(name: str, api: str) -> HttpAnswer:
    return plain(next(sample for sample in SMALL if sample.name == name), api)


def _bytes(quirk: Quirk, variant: Variant, api: str) -> Iterator[tuple[object, ...]]:
    """What a client receives from each sample with a quirk."""
    for sample in SMALL:
        answer = play(quirk, variant, api, sample)
        yield answer.data, answer.headers, answer.ending


def _digest(received: tuple[tuple[object, ...], ...]) -> bytes:
    return sha256(repr(received).encode()).digest()


@cache
def _received(api: str) -> dict[bytes, list[str]]:
    """The names of the quirks by a digest of what clients receive from all samples."""
    received: dict[bytes, list[str]] = {}
    for form in forms(api, QUIRKS.values()):
        key = _digest(tuple(_bytes(form.quirk, form.variant, api)))
        received.setdefault(key, []).append(form.name)
    return received


@for_all(("quirk", "variant", "api"), FORMS)
def test_a_variant_changes_its_sample(quirk: Quirk, variant: Variant, api: str) -> None:
    """The stream of its own sample differs from the plain one in bytes, writes, headers or end."""
    sample = quirk.sample_of(variant)
    assert changes(play(quirk, variant, api, sample), plain(sample, api))


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
def test_no_variant_repeats_another(api: str) -> None:
    """No two variants give clients the same bytes from every sample."""
    assert [names for names in _received(api).values() if len(names) > 1] == []


@pytest.mark.parametrize(("quirk", "variant", "api"), ELSEWHERE)
def test_a_variant_is_left_out_only_where_it_repeats_something(
    quirk: Quirk, variant: Variant, api: str
) -> None:
    """Where the kit leaves a variant out, it gives the plain bytes, or those of another variant."""
    received = tuple(_bytes(quirk, variant, api))
    usual = tuple(
        (answer.data, answer.headers, answer.ending)
        for answer in (_plain(sample.name, api) for sample in SMALL)
    )
    assert received == usual or _digest(received) in _received(api)


def test_what_every_changed_stream_means_is_written_by_hand() -> None:
    """Each variant whose stream says something else has a meaning to compare our decoder with."""
    changed = {
        f"{quirk.name}:{variant.name}".rstrip(":")
        for quirk in QUIRKS.values()
        for variant in quirk.variants
        if variant.as_sent
    }
    assert changed == set(MEANINGS)
