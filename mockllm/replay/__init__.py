"""From a request and a scenario to the bytes of the answer.

`player` decides which answer a request gets. `resolve` makes the neutral turn, `stream` and
`compile` make the bytes, `tape_player` plays recordings, `session` is the state.
"""
