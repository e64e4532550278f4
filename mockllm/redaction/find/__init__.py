"""Texts to places: what in a text is secret, and where. `finder` begins; `patterns`,
`secret_names`, `addresses` and `personal` know what secrets look like, `user_rules` what a user
says."""
