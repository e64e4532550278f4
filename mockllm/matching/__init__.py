"""Which turn of which scenario answers a request, or why none does. Pure.

`index` finds candidates among the scenarios, `conditions` checks conditions, `history` reads the
conversation that a request carries, `positions` finds the turn at a position of a conversation,
`select` decides. `request_validation` checks the request against the turn, and `mismatch` explains
why no scenario answers.
"""
