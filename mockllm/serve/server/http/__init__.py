"""HTTP on connections: how requests arrive, and the one writer of answers."""
