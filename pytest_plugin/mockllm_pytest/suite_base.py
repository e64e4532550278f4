"""Base of all suites: each rule is a test, and the first one runs the client for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import pytest

from mockllm.core.errors import ProbeError, UsageError
from mockllm.core.text import did_you_mean
from mockllm_pytest.plugin import SUITE_SECTION
from mockllm_pytest.printing import add_section, fail

_STASH = pytest.StashKey[Any]()
_BROKEN = pytest.StashKey[str]()
"""Why the client cannot be run."""


class RuleSuite:
    """A client, and the rules that it is judged by; a suite defines the methods that raise here.

    Args:
        api: the name of the protocol that the client speaks.
        xfail: the rules that are known to be broken, each with the reason. If one of them holds,
            its test fails. No other rule is excused, not even in the same case.
    """

    api: ClassVar[str] = ""
    xfail: ClassVar[Mapping[str, str]] = {}

    _rules: ClassVar[tuple[str, ...]] = ()

    def _run_client(self, request: pytest.FixtureRequest) -> Any:
        """Runs the client; the findings for all rules.

        Raises:
            ProbeError: the client cannot be run.
        """
        raise NotImplementedError

    def _summary(self, found: Any) -> str:
        """The numbers of what was run, and of what was not judged."""
        raise NotImplementedError

    def _mistake(self, rule: str, found: Any, request: pytest.FixtureRequest) -> str:
        """The client's mistake under a rule. It may take long: it is only called where the test
        fails."""
        raise NotImplementedError

    def _is_broken(self, rule: str, found: Any) -> bool:
        """Whether the client breaks a rule."""
        raise NotImplementedError

    def _not_judged(self, rule: str, found: Any) -> str:
        """Why a rule was not judged, as the reason of a skipped test; "" if it was."""
        raise NotImplementedError

    def _check(self, rule: str, request: pytest.FixtureRequest) -> None:
        """Fails, skips or xfails the test of one rule."""
        examined = self._examination(request)
        reason = self.xfail.get(rule)
        if self._is_broken(rule, examined):
            if reason is not None:
                pytest.xfail(reason)
            fail(self._mistake(rule, examined, request))
        skipped = self._not_judged(rule, examined)
        if skipped:
            pytest.skip(skipped)
        if reason is not None:
            fail(f"[XPASS(strict)] {reason}")

    def _examination(self, request: pytest.FixtureRequest) -> Any:
        """The findings of the class's first test, for all of them.

        If the client cannot be run, this test fails, and the others are skipped.
        """
        stash: pytest.Stash = request.node.getparent(pytest.Class).stash
        if _BROKEN in stash:
            pytest.skip(f"not judged: {stash[_BROKEN]}")
        if _STASH not in stash:
            try:
                self._check_settings()
                stash[_STASH] = self._run_client(request)
            except (ProbeError, UsageError) as error:
                stash[_BROKEN] = str(error)
                fail(str(error))
            add_section(request.node, "call", SUITE_SECTION, self._summary(stash[_STASH]))
        return stash[_STASH]

    def _check_settings(self) -> None:
        """Checks what the class was given.

        Raises:
            UsageError: there is no API, or a name in `xfail` is none of a rule.
        """
        if not self.api:
            raise UsageError(f'set the API of {type(self).__name__}, as in api = "chat"')
        for name in self.xfail:
            if name not in self._rules:
                hint = did_you_mean(name, self._rules, f"there are: {', '.join(self._rules)}")
                raise UsageError(f"xfail: there is no rule {name!r}; {hint}")


Suite = TypeVar("Suite", bound=type[RuleSuite])


def each_rule_is_a_test(
    rules: Iterable[str], promise: Callable[[str], str]
) -> Callable[[Suite], Suite]:
    """Gives a suite a test for each rule, whose docstring is the promise."""

    def decorate(suite: Suite) -> Suite:
        suite._rules = tuple(rules)  # noqa: SLF001 - of our own base
        for rule in suite._rules:  # noqa: SLF001
            test = _test_of(suite, rule, promise(rule))
            setattr(suite, test.__name__, test)
        return suite

    return decorate


def _test_of(suite: type[RuleSuite], rule: str, text: str) -> Callable[..., None]:
    def test(self: RuleSuite, request: pytest.FixtureRequest) -> None:
        self._check(rule, request)

    test.__name__ = f"test_{rule.replace('-', '_')}"
    test.__qualname__ = f"{suite.__name__}.{test.__name__}"
    test.__doc__ = f"{text[0].upper()}{text[1:]}."
    return test


def rerun_line(request: pytest.FixtureRequest, options: str = "") -> str:
    """The line that runs a test again."""
    return f'to run it again: pytest "{request.node.nodeid}"{options}'
