"""What mockllm does, as digests: a record to hold a restructuring against."""
