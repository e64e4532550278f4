"""A server that runs until a signal: its log, its signals, its workers."""
