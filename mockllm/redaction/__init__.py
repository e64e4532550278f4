"""Redaction: the one opinion on what is secret, shared by recorder, importers, journal and logs.

`patterns`, `secret_names` and `credentials` decide what is secret. `masks` writes `***` for it in
the journal and the logs. `finder` finds it in documents of any encoding, `redact` replaces it in an
exchange and `scrub` in files; `allowlist` is what a recording keeps of headers and URLs.
"""
