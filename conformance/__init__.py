"""The published table: adapters of well-known clients, and what was measured with them."""
