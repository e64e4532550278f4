"""From a request and a scenario to the bytes of the answer.

`player` answers a request: it makes a `decision` and plays the turn; `request_headers` may ask for
quirks and faults. In `compilation`, `resolve`
makes the neutral turn, `compiler` the bytes, and `tape_player` plays recordings; `sessions` are the
state, and `lookups` and `routes` answer what calls no model.
"""
