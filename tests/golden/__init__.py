"""A record of mockllm's behaviour as digests, to compare a restructured version with."""
