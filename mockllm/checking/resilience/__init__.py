"""Whether a client survives faults: cases, and rules that are judged from journal and outcome.

`cases` has what is played, `judge` the verdict of each rule in a case.
"""
