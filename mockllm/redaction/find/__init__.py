"""Texts to places: what in a text is secret, and where. `finder` begins; `patterns`, `assignments`,
`addresses` and `secret_names` know what secrets look like."""
