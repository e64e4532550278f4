"""Coding agents on the command line: their programs, started with a HOME of their own.

`agents.yaml` says what each needs: the words before the user's arguments, variables, and files in
the HOME. `launch` finds the program, writes the files, and runs it. The code knows no agent.
"""
