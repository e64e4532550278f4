"""Hypothesis strategies for results."""

from __future__ import annotations

from hypothesis import strategies as st

from mockllm.checking.rules import COSTS
from mockllm.conformance.results import (
    CaseResult,
    Client,
    QuirkInfo,
    Results,
    Smallest,
    Stream,
)
from tests.strategies import json_values, texts

VERDICTS = (
    "right",
    "tolerated",
    "wrong",
    "silent",
    "rejected",
    "crash",
    "adapter",
    "not judged",
    "not applicable",
)

several = st.lists(texts, max_size=3).map(tuple)
objects = st.dictionaries(texts, json_values, max_size=3)

streams = st.builds(
    Stream,
    writes=st.lists(
        st.one_of(st.binary(max_size=8), texts.map(str.encode), st.just(b"data: {}\n\n" * 600)),
        max_size=4,
    ).map(tuple),
    times=st.lists(st.integers(0, 10**9), max_size=3).map(tuple),
    headers=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    ending=st.sampled_from(["complete", "closed", "reset"]),
    status=st.sampled_from([200, 500]),
)

cases = st.builds(
    CaseResult,
    case=texts,
    group=texts,
    verdict=st.sampled_from(VERDICTS),
    quirk=texts,
    cost=st.none() | st.sampled_from(COSTS),
    invariant=texts,
    reaction=st.sampled_from(["same", "error", "either"]),
    baseline=texts,
    differences=several,
    fields=several,
    exception=texts,
    reason=texts,
    not_judged=several,
    expected=objects,
    actual=objects,
    stream=st.none() | streams,
    smallest=st.none() | st.builds(Smallest, streams, texts, objects, objects),
    reproduce=several,
)

results = st.builds(
    Results,
    client=st.builds(Client, texts, texts, texts, texts, texts, texts),
    api=texts,
    level=st.sampled_from(["bytes", "payloads", "http"]),
    mockllm=texts,
    date=texts,
    commit=texts,
    arguments=objects,
    unsupported=several,
    stopped=texts,
    cases=st.lists(cases, max_size=3).map(tuple),
    quirks=st.dictionaries(
        texts, st.builds(QuirkInfo, texts, texts, texts, several, texts, texts), max_size=2
    ),
)
