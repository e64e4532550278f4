"""The log probabilities of a candidate, `logprobsResult`: one list for all of its texts.

https://ai.google.dev/api/generate-content#LogprobsResult
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from math import fsum

from mockllm.core.events import Token
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, objects

_VOCABULARY = 262_144


def write_logprobs(tokens: Sequence[Token], *, with_top: bool) -> Json:
    """The fields of a candidate for the tokens of its text; none without tokens.

    Args:
        with_top: whether to send the most likely tokens of each position, which are the token
            itself where no others are known. The two lists of an answer have the same length.
    """
    if not tokens:
        return {}
    result: Json = {"chosenCandidates": [_write_token(token) for token in tokens]}
    if with_top:
        result["topCandidates"] = [
            {"candidates": [_write_token(other) for other in token.top or (token,)]}
            for token in tokens
        ]
    return {"logprobsResult": result}


def _write_token(token: Token) -> Json:
    id = zlib.crc32(token.text.encode("utf-8", "surrogatepass")) % _VOCABULARY
    return {"token": token.text, "tokenId": id, "logProbability": token.logprob}


def has_logprobs(candidate: Fields) -> bool:
    """Whether a candidate has log probabilities of its tokens."""
    return bool(array(mapping(candidate.get("logprobsResult")).get("chosenCandidates")))


def joined_logprobs(candidates: Iterable[Fields]) -> Json:
    """The log probabilities of candidates that become one, as a field of it; none without any."""
    results = [mapping(one["logprobsResult"]) for one in candidates if "logprobsResult" in one]
    if not results:
        return {}
    lists = {
        name: [item for result in results for item in array(result.get(name))]
        for name in ("chosenCandidates", "topCandidates")
    }
    return {"logprobsResult": {name: items for name, items in lists.items() if items}}


def summed_up(candidate: Fields, *, vertex: bool) -> Json:
    """The fields of a whole candidate that sum up its log probabilities; none without any.

    Args:
        vertex: whether the service is Vertex AI, which sends only their average.
    """
    result = mapping(candidate.get("logprobsResult"))
    given = [token.get("logProbability") for token in objects(result.get("chosenCandidates"))]
    known = [value for value in given if isinstance(value, int | float)]
    if not known:
        return {}
    average = {"avgLogprobs": fsum(known) / len(known)}
    if vertex:
        return average
    return {**average, "logprobsResult": {**result, "logProbabilitySum": fsum(known)}}
