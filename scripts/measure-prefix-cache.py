#!/usr/bin/env python3
"""Measure whether a server reuses prefixes. The same as the command `measure-prefix-cache`, from a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labbook.measure_cli import main

if __name__ == "__main__":
    sys.exit(main())
