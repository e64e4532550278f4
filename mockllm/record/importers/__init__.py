"""Reads exchanges from files of other tools, and writes them: VCR, HTTP archives, dumped streams.

Each reader has `read(path)`, which returns the entries of a file in order: an exchange, or an
`Unread` with the reason why the entry is none. Fixtures of aimock hold no bytes, so `aimock` makes
scenarios of them.
"""
