"""Answers of Cohere's routes for embeddings and rankings that follow from the request.

https://docs.cohere.com/reference/embed and https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

import base64
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

from mockllm.core.http import Target
from mockllm.core.seeded import derive_uuid, unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.cohere.errors import CHECKS, TEXT, invalid, missing
from mockllm.wire.protocols.records import FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import array, objects, string

_DIMENSIONS = (256, 512, 1024, 1536)
_USUAL_DIMENSIONS = 1536  # of embed-v4.0
_MOST_TEXTS = 96  # `texts` of the reference
_MOST_DOCUMENTS = 1000  # `documents` of the reference
_SCORED = 256
"""The dimensions of the vectors by which documents are ranked."""

Vector = tuple[float, ...]


def _meta(**units: int) -> Json:
    return {"api_version": {"version": "2"}, "billed_units": units}


_META = {"api_version": {"version": "1"}}


def _of_first(answer: Json) -> Json:
    """An answer of the first version, which says so."""
    return {**answer, "meta": {**answer["meta"], **_META}}


# Embeddings


def _bits(vector: Vector) -> list[int]:
    """A bit for each dimension, the sign, eight in a number up to 255."""
    eights = (vector[at : at + 8] for at in range(0, len(vector), 8))
    return [sum((value > 0) << (7 - i) for i, value in enumerate(eight)) for eight in eights]


_FORMS: dict[str, Callable[[Vector], Any]] = {
    "float": list,
    "int8": lambda vector: [round(127 * value) for value in vector],
    "uint8": lambda vector: [round(127 * value) + 128 for value in vector],
    "binary": lambda vector: [bits - 128 for bits in _bits(vector)],
    "ubinary": _bits,
    "base64": lambda vector: base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode(),
}
_EMBED = CHECKS.fields(
    {"model": TEXT, "input_type": TEXT},
    {
        "texts": CHECKS.list_of(TEXT),
        "images": CHECKS.list_of(TEXT),
        "inputs": CHECKS.list_of(CHECKS.mapping),
        "embedding_types": CHECKS.list_of(CHECKS.one_of(*_FORMS)),
        "output_dimension": CHECKS.number(1, whole=True),
    },
)


def _embed(body: Fields, target: Target) -> Json:
    """A unit vector for each text (`mockllm.core.seeded`); images and mixed inputs stand for the
    text of their JSON."""
    _EMBED("", body)
    texts = array(body.get("texts"))
    others = [*array(body.get("images")), *objects(body.get("inputs"))]
    inputs = [*texts, *map(dumps, others)]
    if not 1 <= len(inputs) <= _MOST_TEXTS:
        raise invalid(f"there must be 1 to {_MOST_TEXTS} texts, got {len(inputs)}.", "texts")
    dimensions = body.get("output_dimension") or _USUAL_DIMENSIONS
    if dimensions not in _DIMENSIONS:
        known = ", ".join(map(str, _DIMENSIONS))
        raise invalid(f"output_dimension must be one of {known}.", "output_dimension")
    vectors = [unit_vector(text, dimensions) for text in inputs]
    forms = array(body.get("embedding_types")) or ["float"]
    return {
        "id": derive_uuid(dumps(inputs), "embed"),
        "embeddings": {form: [_FORMS[form](vector) for vector in vectors] for form in forms},
        "texts": texts,
        "meta": _meta(input_tokens=sum(map(tokens, inputs))),
        "response_type": "embeddings_by_type",
    }


def _first_embed(body: Fields, target: Target) -> Json:
    """The same in the first version: a list of vectors, unless types are named."""
    usual = {"model": "embed-english-v3.0", "input_type": "search_document"}
    answer = _of_first(_embed({**usual, **body}, target))
    if body.get("embedding_types"):
        return answer
    floats = answer["embeddings"]["float"]
    return {**answer, "embeddings": floats, "response_type": "embeddings_floats"}


# Tokens


def _tokenize(body: Fields, target: Target) -> Json:
    """A token for each character, its code point; so each text has an inverse."""
    CHECKS.fields({"text": TEXT})("", body)
    text = body["text"]
    return {"tokens": list(map(ord, text)), "token_strings": list(text), "meta": _META}


def _detokenize(body: Fields, target: Target) -> Json:
    CHECKS.fields({"tokens": CHECKS.list_of(CHECKS.number(0, sys.maxunicode, whole=True))})(
        "", body
    )
    return {"text": "".join(map(chr, body["tokens"])), "meta": _META}


# Rankings


def _rerank(body: Fields, target: Target) -> Json:
    """The documents by how many words they share with the query; scores are from 0 to 1."""
    _RERANK("", body)
    documents = [_document(item) for item in body["documents"]]
    if not 1 <= len(documents) <= _MOST_DOCUMENTS:
        raise invalid(f"there must be 1 to {_MOST_DOCUMENTS} documents.", "documents")
    query = unit_vector(body["query"], _SCORED)
    scores = [_score(query, unit_vector(document, _SCORED)) for document in documents]
    ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
    results = [{"index": index, "relevance_score": scores[index]} for index in ranked]
    return {
        "id": derive_uuid(dumps([body["query"], documents]), "rerank"),
        "results": results[: body.get("top_n") or len(results)],
        "meta": _meta(search_units=-(-len(documents) // 100)),
    }


def _first_rerank(body: Fields, target: Target) -> Json:
    """The same in the first version, which may return the documents."""
    answer = _of_first(_rerank({"model": "rerank-english-v3.0", **body}, target))
    if body.get("return_documents"):
        for result in answer["results"]:
            result["document"] = {"text": _document(body["documents"][result["index"]])}
    return answer


def _document(item: object) -> str:
    if isinstance(item, dict):
        return string(item.get("text")) or dumps(item)
    if not isinstance(item, str):
        raise missing("documents[].text")
    return item


def _score(one: Vector, other: Vector) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return round(min(max(product, 0.0), 1.0), 7)


_RERANK = CHECKS.fields(
    {"model": TEXT, "query": TEXT, "documents": CHECKS.of_kind(list, "array")},
    {"top_n": CHECKS.number(1, whole=True)},
)

FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/v2/embed$"), _embed),
    FallbackRoute(re.compile(r"/v2/rerank$"), _rerank),
    FallbackRoute(re.compile(r"/v1/embed$"), _first_embed),
    FallbackRoute(re.compile(r"/v1/rerank$"), _first_rerank),
    FallbackRoute(re.compile(r"/v1/tokenize$"), _tokenize),
    FallbackRoute(re.compile(r"/v1/detokenize$"), _detokenize),
)
