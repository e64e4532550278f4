"""Redaction: the one opinion on what is secret, shared by recorder, importers, journal and logs.

`walk` reads documents, `find` finds secrets in their texts, `redact` replaces them in an exchange
and `scrub` in files. `rules` says which kinds are searched, and has the user's own. `credentials`
knows those of headers and URLs, and what recordings, the journal and the logs keep of these.
"""
