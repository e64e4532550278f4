"""From what went over the wire to scenarios: nothing is lost, no secret is kept.

`drafting` makes scenarios of captured exchanges, `store` writes them into a folder. The exchange
itself is `mockllm.tapes.captured`, the file of its bytes `mockllm.tapes`.
"""
