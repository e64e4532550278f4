"""From what went over the wire to scenarios: nothing is lost, no secret is kept.

`drafting` makes scenarios of captured exchanges, `store` writes them into a folder, `finding` asks
for them again. The exchange itself, and the file of its bytes, is `mockllm.play.tapes.captured`.
"""
