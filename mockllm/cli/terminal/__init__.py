"""Output and errors of commands."""
