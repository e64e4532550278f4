"""The package for JavaScript: clients/js."""
