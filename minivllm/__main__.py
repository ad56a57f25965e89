"""`python -m minivllm`: the same as the `minivllm` command."""

import sys

from minivllm.cli import main

sys.exit(main())
