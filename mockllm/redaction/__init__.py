"""What is secret, and how it is taken out: asked by the recorder, the journal and the logs.

`patterns` and `credentials` say what a secret looks like and where it stands, `text` finds
it in documents of any encoding, `redact` takes it out of an exchange, `scrub` out of files.
"""
