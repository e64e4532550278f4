"""From what went over the wire to scenarios: nothing is lost, no secret is kept.

`captured` is one exchange as it was, `redact` takes the secrets out of it, `drafts` makes
scenarios of many, `tape` is the file of exact bytes beside a scenario, `folder` writes both.
"""
