"""Tapes: files beside a scenario with the exact bytes of a recorded answer and their times.

`captured` is one exchange on the wire and its file, `recorded_turn` what its answer decodes to.
`replay` plays tapes, `recording` writes them.
"""
