"""Every variant of the quirks of a protocol, on its own sample."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.checking import Case, CaseSpec
from mockllm.checking.cases.compile import forms
from mockllm.play.quirks import QUIRKS


def quirk_cases(api: str) -> Iterator[Case]:
    """One case for each variant."""
    for form in forms(api, QUIRKS.values()):
        sample = form.quirk.sample_of(form.variant)
        yield CaseSpec(form.name, sample, api, quirk=form.name).compile()
