"""LangChain's integration of Gemini, in an environment of its own."""
