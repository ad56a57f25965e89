"""`python -m minivllm`: the same as the `minivllm` command."""

from minivllm.cli import run

run()
