"""Hypothesis strategies for turns, shared by the tests of the core and of every protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from hypothesis import strategies as st

from mockllm.core.events import Cite, Frame, Passage, StreamError, Token
from mockllm.core.jsontext import compact
from mockllm.core.text import join_pairs
from mockllm.core.timeline import normal
from mockllm.core.turn import (
    Media,
    Opaque,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
    beats,
)

texts = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=("Cs",)),  # which the types of official SDKs refuse
        st.sampled_from(
            [
                "\u2028",
                "\u2029",
                "\x85",
                "\r",
                "\n",
                "\ufeff",
                "é",
                "👩",
                "\u200d",
                "\u0301",
                "{",
                '"',
            ]
        ),
    ),
    max_size=12,
)
any_texts = st.text(
    st.sampled_from(["\ud83d", "\ude00", "é", '"', "\n"]) | st.characters(codec=None), max_size=12
).map(join_pairs)
"""All that JSON can hold, halves of surrogate pairs among it."""
fragments = st.lists(texts, min_size=1, max_size=4).map(tuple)
names = st.from_regex(r"\A[a-zA-Z0-9_-]{1,12}\Z")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def cut(draw: st.DrawFn, text: str, at_most: int = 4) -> tuple[str, ...]:
    """Non-empty fragments that join to `text`."""
    if not text:
        return ()
    cuts = draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=at_most - 1))
    edges = [0, *sorted(cut_at for cut_at in cuts if cut_at < len(text)), len(text)]
    return tuple(text[a:b] for a, b in pairwise(edges))


@st.composite
def tool_calls(draw: st.DrawFn, *, well_formed: bool = True) -> ToolCall:
    """A call whose arguments are a JSON object (or, not `well_formed`, any text)."""
    name, id = draw(names), draw(names)
    if not well_formed:
        return ToolCall(name, "call_" + id, draw(fragments))
    arguments = draw(st.dictionaries(texts, json_values, max_size=3))
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return ToolCall(name, "call_" + id, draw(cut(text)) if arguments else ())


custom_calls = st.builds(
    ToolCall,
    names,
    names.map("call_{}".format),
    fragments,
    st.none() | names,
    st.just(True),
)
server_tools = st.builds(
    ServerTool,
    st.sampled_from(["web_search", "code_interpreter"]),
    names.map("srv_{}".format),
    st.just("") | names,
    fragments,
    st.none() | texts,
)
units = st.sampled_from(["characters", "pages", "blocks"])
passages = st.tuples(units, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(
    lambda drawn: Passage(drawn[1], drawn[0], drawn[2], drawn[2] + drawn[3])
) | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
    lambda drawn: Passage(drawn[0], "blocks", 0, drawn[1], of_search=True)
)
addresses = st.just("https://example.com/")
citations = st.lists(
    st.builds(Cite, st.just(0), addresses, texts, texts)
    | st.builds(Cite, st.just(0), st.just("") | addresses, texts, texts, passages),
    max_size=2,
).map(tuple)
probabilities = st.floats(-99, 0)


@st.composite
def texts_of_tokens(draw: st.DrawFn) -> Text:
    """A text with tokens, whose fragments may end inside of them."""
    text = draw(texts.filter(bool))
    likely = st.lists(st.builds(Token, texts, probabilities), max_size=2).map(tuple)
    tokens = [Token(own, draw(probabilities), draw(likely)) for own in draw(cut(text))]
    return Text(draw(cut(text)), draw(citations), True, None, tuple(tokens))


parts = st.one_of(
    st.builds(Text, fragments, citations, st.booleans()),
    texts_of_tokens(),
    st.builds(Reasoning, fragments, st.none() | names, st.booleans()),
    st.builds(Refusal, fragments),
    tool_calls(),
)
opaques = st.builds(
    Opaque,
    st.just("chat"),
    st.builds(Frame, texts),
)
natives = st.builds(
    lambda name, value: Opaque(
        "agui", Frame(compact({"type": "CUSTOM", "name": name, "value": value})), native=True
    ),
    names,
    json_values,
)
pieces = st.lists(st.binary(max_size=4), max_size=3).map(tuple)
sounds = st.sampled_from(["audio/wav", "audio/L16;rate=24000"])
media = st.builds(Media, st.just("image/png"), pieces, signature=st.none() | names) | st.builds(
    Media, sounds, pieces, fragments, st.none() | names
)
every_part = parts | custom_calls | server_tools | media
"""With those that not every API has."""
usages = st.builds(
    TokenUsage,
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 100),
)
finishes = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "refusal"])
errors = st.builds(StreamError, texts.filter(bool), st.none() | names, st.none() | names)


def _identity(part: object) -> object:
    """The id of a call, which must differ between calls: AG-UI separates them by id."""
    return part.id if isinstance(part, ToolCall | ServerTool) else object()


@st.composite
def turns(
    draw: st.DrawFn,
    part: st.SearchStrategy[object] = parts,
    *,
    interleaved: bool = True,
    max_parts: int = 4,
    endings: bool = True,
) -> Turn:
    """Turns in normal form.

    Args:
        part: what the parts are drawn from.
        interleaved: whether fragments of different parts may alternate.
        endings: whether the stream may also be cut, or end in an error.
    """
    own = tuple(draw(st.lists(part, max_size=max_parts, unique_by=_identity)))
    sequence = tuple(chain.from_iterable([i] * beats(p) for i, p in enumerate(own)))
    order = tuple(draw(st.permutations(sequence))) if interleaved and sequence else ()
    gaps = draw(
        st.just(())
        | st.lists(
            st.integers(0, 10**6), min_size=len(sequence) + 1, max_size=len(sequence) + 1
        ).map(tuple)
    )
    turn = Turn(own, draw(finishes), draw(st.none() | usages), order, gaps)
    if endings:
        ending = draw(st.sampled_from(["finish", "finish", "cut", "error"]))
        if ending == "cut":
            turn = replace(turn, finish=None)
        elif ending == "error":
            turn = replace(turn, finish=None, error=draw(errors))
    return normal(turn)


def objects(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON objects that have any of these keys, with fitting values or others."""
    return st.fixed_dictionaries(
        {}, optional={key: value | json_values for key, value in values.items()}
    )
