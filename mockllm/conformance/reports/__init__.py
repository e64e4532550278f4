"""Reports that are made from results alone: lines of a terminal, JUnit, a badge, a comparison.
Pure."""
