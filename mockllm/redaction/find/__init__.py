"""Texts to places: what in a text is secret, and where. `finder` begins; `patterns`, `secret_names`
and `personal` know what secrets look like."""
