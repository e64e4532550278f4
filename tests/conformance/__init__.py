"""The published table: adapters of well-known clients, results files, and the page."""
