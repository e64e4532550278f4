"""llama.cpp's server, in an environment of its own."""
