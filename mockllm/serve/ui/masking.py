"""Masks in the answers on the page what the journal masks in the target of a request.

Answers quote it: an error the path, a look-up the id in it, an answer the model. Bodies are shown
as the journal has them.
"""

from __future__ import annotations

import re
from typing import Any

from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.record.redaction.credentials import MASK, masked_url

_WORD = re.compile(r"[\w.@%+~:-]{6,}")


def mask_target(value: Any, exchange: Exchange) -> Any:
    """A JSON value about a request without the secrets of its target: where the journal masks some,
    whatever would be masked as a step of a path is masked in all texts."""
    target = exchange.received.target
    steps = () if target is None else target.segments.values()
    is_masked = MASK in exchange.path or any(MASK in masked_url(f"/{step}") for step in steps)
    return _mask(value) if is_masked else value


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return _WORD.sub(_masked_word, value)
    if isinstance(value, dict):
        return {name: _mask(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(inner) for inner in value]
    return value


def _masked_word(word: re.Match[str]) -> str:
    return MASK if MASK in masked_url(f"/{word[0]}") else word[0]
