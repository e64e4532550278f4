"""The state that several server processes share: stores, and what writes to them and reads."""
