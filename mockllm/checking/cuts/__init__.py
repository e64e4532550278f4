"""Does an accumulator report every stream that was cut, wherever that happens?

A stream is cut at every place that matters: before the first event, between two events, inside an
event, inside a character, before the blank line of an event. The accumulator gets each prefix, is
closed, and is judged by two rules:

- `cut-reported`: it reports the cut.
- `cut-call-not-executed`: it hands on no call whose end was not sent.

A prefix with the whole content of the answer is accepted either way, whether its end marker is
missing or not. `prefixes` makes the prefixes, `judging` judges one of them; `conformance.cuts` runs
clients through them.
"""
