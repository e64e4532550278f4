"""The scenario language: model, loading, dumping and resolving to neutral turns."""
