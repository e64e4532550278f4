"""The cost that a gateway says an answer has, judged against its own prices. Pure.

Gateways say it in a field `cost` of the token counts (OpenRouter; LiteLLM with
`include_cost_in_streaming_usage`) or in a header (LiteLLM, of answers that are not streamed).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from mockllm.core.pairs import read_pairs
from mockllm.core.turn import TokenUsage

_EXAMPLE = "'input=2.5 output=10'"
_TOLERANCE = 1e-4
"""The part by which a cost may be off: gateways round."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of tokens, in the currency of the gateway for a million of them.

    Args:
        cached: of input that was read from a cache; as other input if it is None.
        cache_written: of input that was written into one; likewise.
    """

    input: float
    output: float
    cached: float | None = None
    cache_written: float | None = None

    @classmethod
    def of(cls, text: str) -> Prices:
        """The prices in a text such as `input=2.5 output=10 cached=1.25`.

        Raises:
            ValueError: what is wrong with it, as a sentence.
        """
        pairs = read_pairs(text, [field.name for field in fields(cls)], _EXAMPLE)
        for key in ("input", "output"):
            if key not in pairs:
                raise ValueError(f"must be such as {_EXAMPLE}, got {text!r} without {key}")
        return cls(**{key: _price(key, value) for key, value in pairs.items()})

    def cost(self, usage: TokenUsage) -> float:
        """The price of an answer."""
        plain = usage.input - usage.cached - usage.cache_written
        read = self.input if self.cached is None else self.cached
        written = self.input if self.cache_written is None else self.cache_written
        millionths = (
            plain * self.input
            + usage.cached * read
            + usage.cache_written * written
            + usage.output * self.output
        )
        return millionths / 1_000_000


def _price(key: str, value: str) -> float:
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < math.inf:
        raise ValueError(f"{key} must be a number from 0, got {value!r}")
    return price


def cost_mistakes(stated: Sequence[float], right: float) -> Iterator[str]:
    """The mistakes in what an answer says that it costs, each as a sentence.

    Args:
        stated: each time that it says so.
        right: by the prices.
    """
    for cost in dict.fromkeys(stated):
        if not math.isclose(cost, right, rel_tol=_TOLERANCE):
            yield f"the cost is {cost:g}, and by the prices {right:g}"
    if len(stated) > 1:
        yield f"the cost stands in {len(stated)} places, and a client may add them up"
