"""What other tools recorded, read."""
