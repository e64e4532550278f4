"""Texts to places: what in a text is secret, and where. `finder` begins; `patterns` (keys, e-mail
addresses), `secret_names` (values after names) and `personal` (numbers) know how secrets look,
`spans` where they are, also in encoded texts, and `kept_places` what stays."""
