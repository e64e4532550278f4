"""Which events, parts and fields of each API the kit's cases play.

The pydantic types of each official SDK list the items of its streams (`sdk`, `tree`). The decoded
events of the kit's cases mark the items that they play (`played`). `reasons/` has a written reason
for each item that no case plays. `page` writes docs/maintainers/coverage.md.
"""
