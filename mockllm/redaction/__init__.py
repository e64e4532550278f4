"""Redaction: the one opinion on what is secret, shared by recorder, importers, journal and logs.

`walk` reads documents, `find` finds secrets in their texts, `redact` replaces them in an exchange
and `scrub` in files. `masks` writes `***` for them in the journal and the logs; `credentials` knows
those of headers and URLs, and what a recording keeps of them.
"""
