"""Services of others, recorded and replayed: what a recorder of ours makes of bytes that are not
ours."""
