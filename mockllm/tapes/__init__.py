"""Tapes: the exact bytes of a recorded answer, with their times, in a file beside a scenario.

`captured` is one exchange as it went over the wire; `model`, `load` and `dump` are the file.
`replay` plays tapes, `recording` writes them.
"""
