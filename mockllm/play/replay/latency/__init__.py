"""When the parts of an answer are due, drawn for each request: which latency a turn has, and the
schedule that is made of it."""
