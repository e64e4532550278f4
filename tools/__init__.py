"""What maintainers run; not in the wheel."""
