"""Whether an exception was raised by the adapter or runner, and not by the client. Pure but for
looking which words of a command line are files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mockllm.checking.judging.compare import Judgement
from mockllm.conformance.attachments.messages import Answer


class AdapterFrames:
    """The files of an adapter.

    Args:
        adapter: as the runner names it in its first answer; "" if it does not.
        command: of the runner. Its files count where the runner names no adapter.
    """

    def __init__(self, adapter: str, command: Sequence[str]) -> None:
        words = adapter.split() if adapter else [one for one in command if Path(one).is_file()]
        self._files = {_base_name(word) for word in words}

    def of(self, answer: Answer, judgement: Judgement) -> str:
        """The innermost frame of the exception that makes a case fail, if it is in the adapter."""
        if not any(difference.field in ("crash", "errors") for difference in judgement.differences):
            return ""
        return self.raised_in(answer)

    def raised_in(self, answer: Answer) -> str:
        """The innermost frame of the exception of an answer, if it is in the adapter."""
        raised = (answer.raised, *(error.raised for error in answer.outcome.errors))
        first = next(filter(None, raised), "")
        file = _base_name(re.split(r":\d+", first)[0])
        return first if file and file in self._files else ""


def _base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]
