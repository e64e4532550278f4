"""`python -m mockllm` is the command `mockllm` of mockllm-harness."""

from mockllm.cli import main

if __name__ == "__main__":
    main(prog_name="mockllm")
