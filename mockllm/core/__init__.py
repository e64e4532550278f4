"""The protocol-neutral core: frames, events, turns, requests, and values derived from a seed.

Here lives what every other wing speaks of. Pure: no I/O, no clock, no randomness, and no import of
another wing. One module is an exception: `patterns` runs the regular expressions of users under a
time limit.

For others: all modules. `errors` has every exception; `events`, `turn` and `timeline` are the model
of an answer, `request` and `http` that of a request.
"""
