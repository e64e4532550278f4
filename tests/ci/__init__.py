"""What others use in their continuous integration: the action for GitHub, hooks, snippets."""
