"""A language model of a few kilobytes whose output is deterministic nonsense.

It has the architecture of Llama with one layer, random weights from a fixed seed, and a vocabulary
of all bytes and a few words, of which it generates only the words. `write` writes it as a GGUF file
for llama.cpp: a header, the metadata, the shapes of the tensors, and their values.
"""

from __future__ import annotations

import random
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = (
    "the", "rain", "in", "Rome", "is", "warm", "and", "Zürich", "has", "clouds", "over", "water",
    "today", "while", "trains", "go", "north", "to", "see", "mountains", "where", "nobody", "asks",
    "for", "42", "or", "7", "numbers", "of", "café", "lights", "by", "night", "so", "we", "wait",
)  # fmt: skip
"""The words that the model generates."""

CALL = "<tool_call>"
"""The token that begins a call; the model generates it with a logit bias."""

END = "<|im_end|>"
"""The token that ends an answer."""

_EMBEDDING = 32
_HIDDEN = 64
_HEADS = 2
_CONTEXT = 4096
_ALIGNMENT = 32
_F32 = 0

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
"""The kinds of tokens, as GGUF numbers them."""

_TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- 'The tools:\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools>\\nA call:\\n<tool_call>{"name": <name>, "arguments": <object>}' }}
    {{- '</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content }}
        {{- '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
"""The chat template of Hermes models, so that servers recognise calls."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: int
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class _Tensor:
    """`shape` begins with the length of a row, as GGUF requires."""

    name: str
    shape: tuple[int, ...]
    numbers: array[float]


def write(path: Path, seed: int = 1) -> None:
    """Writes the model as a GGUF file; the same seed gives the same bytes."""
    tokens = _vocabulary()
    tensors = list(_tensors(tokens, random.Random(seed)))
    metadata = _metadata(tokens)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + value for key, value in metadata.items())
    body = b""
    for tensor in tensors:
        head += _string(tensor.name) + struct.pack("<I", len(tensor.shape))
        head += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape)
        head += struct.pack("<IQ", _F32, len(body))
        body += _aligned(_little(tensor.numbers))
    path.write_bytes(_aligned(head) + body)


def token(text: str) -> int:
    """The number of a token."""
    return [one.text for one in _vocabulary()].index(text)


def _vocabulary() -> list[_Token]:
    control = [_Token(text, _CONTROL) for text in ("<s>", END, "<|im_start|>")]
    marks = [_Token(text, _USER_DEFINED) for text in (CALL, "</tool_call>")]
    octets = [_Token(f"<0x{octet:02X}>", _BYTE) for octet in range(256)]
    letters = [_Token(chr(code), _NORMAL, -100.0) for code in range(0x21, 0x7F)]
    words = [_Token("\u2581" + word, _NORMAL, -float(n)) for n, word in enumerate(WORDS)]
    return [_Token("<unk>", _UNKNOWN), *control, *marks, *octets, *letters, *words]


def _tensors(tokens: list[_Token], source: random.Random) -> Iterator[_Tensor]:
    def random_tensor(name: str, *shape: int) -> _Tensor:
        size = shape[0] * shape[1]
        return _Tensor(name, shape, array("f", (source.gauss(0, 0.5) for _ in range(size))))

    def ones(name: str) -> _Tensor:
        return _Tensor(name, (_EMBEDDING,), array("f", [1.0]) * _EMBEDDING)

    yield random_tensor("token_embd.weight", _EMBEDDING, len(tokens))
    yield ones("output_norm.weight")
    output = random_tensor("output.weight", _EMBEDDING, len(tokens))
    first = (len(tokens) - len(WORDS)) * _EMBEDDING
    # A row of zeros gives a token a lower logit than the best word has.
    output.numbers[:first] = array("f", bytes(4 * first))
    yield output
    yield ones("blk.0.attn_norm.weight")
    for part in ("q", "k", "v", "output"):
        yield random_tensor(f"blk.0.attn_{part}.weight", _EMBEDDING, _EMBEDDING)
    yield ones("blk.0.ffn_norm.weight")
    yield random_tensor("blk.0.ffn_gate.weight", _EMBEDDING, _HIDDEN)
    yield random_tensor("blk.0.ffn_up.weight", _EMBEDDING, _HIDDEN)
    yield random_tensor("blk.0.ffn_down.weight", _HIDDEN, _EMBEDDING)


def _metadata(tokens: list[_Token]) -> dict[str, bytes]:
    """The fields in GGUF encoding: the number of a type, and the value."""
    return {
        "general.architecture": _text("llama"),
        "general.name": _text("nonsense"),
        "llama.block_count": _number(1),
        "llama.context_length": _number(_CONTEXT),
        "llama.embedding_length": _number(_EMBEDDING),
        "llama.feed_forward_length": _number(_HIDDEN),
        "llama.attention.head_count": _number(_HEADS),
        "llama.attention.layer_norm_rms_epsilon": struct.pack("<If", 6, 1e-5),
        "llama.rope.dimension_count": _number(_EMBEDDING // _HEADS),
        "tokenizer.ggml.model": _text("llama"),
        "tokenizer.ggml.pre": _text("default"),
        "tokenizer.ggml.tokens": _list(8, b"".join(_string(t.text) for t in tokens), len(tokens)),
        "tokenizer.ggml.scores": _list(6, _packed("f", [t.score for t in tokens]), len(tokens)),
        "tokenizer.ggml.token_type": _list(5, _packed("i", [t.kind for t in tokens]), len(tokens)),
        "tokenizer.ggml.unknown_token_id": _number(0),
        "tokenizer.ggml.bos_token_id": _number(1),
        "tokenizer.ggml.eos_token_id": _number(2),
        "tokenizer.ggml.add_bos_token": struct.pack("<I?", 7, True),
        "tokenizer.ggml.add_space_prefix": struct.pack("<I?", 7, False),
        "tokenizer.chat_template": _text(_TEMPLATE),
    }


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _text(text: str) -> bytes:
    return struct.pack("<I", 8) + _string(text)


def _number(value: int) -> bytes:
    return struct.pack("<II", 4, value)


def _list(kind: int, packed: bytes, length: int) -> bytes:
    return struct.pack("<IIQ", 9, kind, length) + packed


def _packed(code: str, values: list[float] | list[int]) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


def _little(numbers: array[float]) -> bytes:
    ordered = array("f", numbers)
    if sys.byteorder == "big":
        ordered.byteswap()
    return ordered.tobytes()


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
