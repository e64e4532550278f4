"""The live page at `/_mockllm/ui`: its files, what it reads, and what it is sent.

The pages run in a browser (`site/`), and everything that they show comes from the routes here.
Nothing but `opening` is imported before a page is opened. The server knows none of it.
"""
