"""Which turn of which scenario answers a request, or why none does. Pure.

`index` finds scenarios without trying each, `conditions` checks conditions, `conversation` reads
the history that a request carries and finds the turn at a position, `select` decides.
`request_validation` checks the request against the turn, and `mismatch` explains why no scenario
answers. `fingerprint` finds recordings by their requests; `route_selection` is the same for what
calls no model.
"""
