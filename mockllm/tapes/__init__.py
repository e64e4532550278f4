"""Tapes: files beside a scenario with the exact bytes of a recorded answer and their times.

`captured` is one exchange on the wire; `model`, `load` and `dump` are the file; `conversion` is
between the two. `replay` plays tapes, `recording` writes them.
"""
