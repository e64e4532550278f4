"""From a request and a scenario to the bytes of the answer.

`resolve` makes the neutral turn, `stream` and `compile` make the bytes, `player` decides which
answer a request gets, `session` is the state, `tape_player` plays recordings.
"""
