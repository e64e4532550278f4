"""Which turn of which scenario answers a request, and why none does. Pure.

`index` holds the scenarios, `select` chooses the turn, `conditions` says whether a condition holds,
`request_validation` whether the request may have the turn, `mismatch` explains why nothing matches.
"""
