"""What commands print, and how they fail."""
