"""From bytes to scenarios, without secrets.

Here lives what finds and replaces secrets, what makes scenarios of captured exchanges and writes
them, and what reads the files of other tools. It sends nothing and judges nothing: the server and
the command line hand it exchanges.

For others:

- `redaction`: `redact` (an exchange), `scrub` (files), `rules`, `credentials`
- `recording`: `drafting.drafts`, `store.folder`, `finding`
- `importers`: `files` (any file), `batch` (many of them), `export`
- `audit`: tests that replay cassettes by themselves
"""
