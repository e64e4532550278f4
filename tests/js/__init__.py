"""The package for JavaScript: packages/js."""
