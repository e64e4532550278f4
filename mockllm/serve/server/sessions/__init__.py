"""Which session a request belongs to, and what answers in it."""
