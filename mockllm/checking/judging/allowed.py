"""The cases that a policy allows a client to get wrong (`Policy.allow`). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from mockllm.checking.cases.case import Case
from mockllm.errors import UsageError
from mockllm.quirks import QUIRKS


def allowed_name(case: Case, allow: Mapping[str, str]) -> str | None:
    """The name in `allow` that covers a case: its own, its quirk, or its quirk with the variant."""
    quirk = case.quirk.partition(":")[0]
    return next((name for name in (case.name, case.quirk, quirk) if name and name in allow), None)


def check_allowed(allow: Mapping[str, str], cases: Iterable[str] | None = None) -> None:
    """Checks that every name in `allow` is a quirk, a variant of one, or a case.

    Args:
        cases: the names of all cases; None: names of cases are not checked.
    """
    variants = {
        f"{quirk.name}:{variant.name}" for quirk in QUIRKS.values() for variant in quirk.variants
    }
    known = {*QUIRKS, *variants}
    for name in allow:
        if name in known or ("/" in name and cases is None):
            continue
        among = set(cases or ()) if "/" in name else known
        if name in among:
            continue
        near = get_close_matches(name, among, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"allow: there is no quirk or case {name!r}{hint} `mockllm quirks` lists the quirks, "
            "and a report names its cases"
        )
