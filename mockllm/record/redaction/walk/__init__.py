"""Documents to texts: the strings of JSON, event streams and YAML, each with its place, and the
channels in which a client joins them."""
