"""Distributions of times and lengths, as options and scenarios write them, drawn from a seed. Pure.

A value is made from one number between 0 and 1 by the inverse of the distribution function. So the
same seed gives the same values on every machine, and a test compares them with the definition.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from mockllm.core.record import record

if TYPE_CHECKING:
    from statistics import NormalDist


@cache
def _standard() -> NormalDist:
    # Imported with the first draw: it takes as long as all the rest that reads a scenario's times.
    from statistics import NormalDist

    return NormalDist()


_P99 = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""

Kind = Literal["constant", "uniform", "normal", "lognormal", "exponential", "samples"]


@record
class Distribution:
    """A distribution of numbers that are not negative.

    Args:
        values: `constant`: the value. `uniform`: the least and the greatest. `normal`: mean and
            standard deviation, of what is cut off below 0. `lognormal`: the median and the 99th
            percentile. `exponential`: the mean. `samples`: at least one sample, sorted; each is
            as likely as the others.
    """

    kind: Kind
    values: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The value below which a share of all values lies; `share` is between 0 and 1, both left
        out."""
        return self._inverse()(share)

    def draw(self, seed: str, *what: object, count: int) -> list[float]:
        """So many values, the same for the same arguments."""
        if self.kind == "constant":
            return [self.values[0]] * count
        return list(map(self._inverse(), shares(seed, *what, count=count)))

    def _inverse(self) -> Callable[[float], float]:
        """The inverse of the distribution function; what all values share is computed once."""
        values, first = self.values, self.values[0]
        match self.kind:
            case "constant":
                return lambda _: first
            case "uniform":
                width = values[1] - first
                return lambda share: first + share * width
            case "exponential":
                return lambda share: -first * math.log1p(-share)
            case "lognormal":
                sigma, inverse = math.log(values[1] / first) / _P99, _standard().inv_cdf
                return lambda share: first * math.exp(inverse(share) * sigma)
            case "samples":
                count = len(values)
                return lambda share: values[int(share * count)]
        deviation = values[1]
        if not deviation:
            return lambda _: first
        below, inverse = _standard().cdf(-first / deviation), _standard().inv_cdf

        def normal(share: float) -> float:
            inside = below + share * (1 - below)
            return max(0.0, first + deviation * inverse(min(max(inside, _LEAST), _MOST)))

        return normal


_LEAST, _MOST = 2.0**-53, 1 - 2.0**-53


def shares(seed: str, *what: object, count: int) -> list[float]:
    """So many numbers between 0 and 1, both left out, evenly distributed and derived from `seed`
    and `what`."""
    text = "\x1f".join([seed, *map(str, what)])
    data = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(8 * count)
    return [((number >> 12) + 0.5) * 2.0**-52 for number in struct.unpack(f"<{count}Q", data)]


_CALL = re.compile(r"([a-z]+)\((.*)\)\Z", re.DOTALL)

ReadNumber = Callable[[str], float]
"""Reads one number, such as a duration; raises ValueError, whose message follows "must be"."""

ReadSamples = Callable[[str], Sequence[float]]
"""The samples that a name stands for, such as that of a file; raises ValueError with a sentence."""


def _no_samples(_: str) -> Sequence[float]:
    raise ValueError("samples come from a file, and none may be named here")


def read_distribution(
    text: str, number: ReadNumber, samples: ReadSamples = _no_samples
) -> Distribution:
    """A distribution as it is written: `300ms`, `uniform(1s, 2s)`, `normal(20ms, 5ms)`,
    `lognormal(300ms, p99=2s)`, `exponential(40ms)` or `samples(FILE)`.

    Raises:
        ValueError: what is wrong with it, as a sentence.
    """
    text = text.strip()
    match = _CALL.match(text)
    if match is None:
        return Distribution("constant", (_number(text, text, number),))
    kind, inside = match[1], match[2].strip()
    if kind == "samples":
        values = tuple(sorted(samples(inside)))
        if not values:
            raise ValueError(f"{text!r} has no samples")
        return Distribution("samples", values)
    usage = _USAGE.get(kind)
    if usage is None:
        raise ValueError(f"{text!r} is no distribution; there are {', '.join(_USAGE.values())}")
    given = [part.strip() for part in inside.split(",")]
    if kind == "lognormal" and len(given) == 2:
        if not given[1].startswith("p99="):
            raise ValueError(f"{text!r} must be written as {usage}")
        given[1] = given[1].removeprefix("p99=").lstrip()
    if len(given) != usage.count(",") + 1:
        raise ValueError(f"{text!r} must be written as {usage}")
    numbers = tuple(_number(part, text, number) for part in given)
    _check_order(text, kind, numbers)
    return Distribution(kind, numbers)  # type: ignore[arg-type]  # a key of _USAGE


_USAGE = {
    "constant": "constant(VALUE)",
    "uniform": "uniform(LEAST, GREATEST)",
    "normal": "normal(MEAN, DEVIATION)",
    "lognormal": "lognormal(MEDIAN, p99=VALUE)",
    "exponential": "exponential(MEAN)",
    "samples": "samples(FILE)",
}


def _number(part: str, whole: str, number: ReadNumber) -> float:
    try:
        return number(part)
    except ValueError as problem:
        raise ValueError(f"{part!r} in {whole!r} must be {problem}") from None


def _check_order(text: str, kind: str, numbers: tuple[float, ...]) -> None:
    if kind == "uniform" and numbers[0] > numbers[1]:
        raise ValueError(f"{text!r} must have the smaller value first")
    if kind == "lognormal" and not 0 < numbers[0] < numbers[1]:
        raise ValueError(f"{text!r} must have a median above 0, and a p99 above the median")
    if kind == "exponential" and not numbers[0]:
        raise ValueError(f"{text!r} must have a mean above 0")
