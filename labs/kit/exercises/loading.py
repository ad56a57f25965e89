"""Python files as modules, wherever they lie: lab folders begin with a digit, and mylabs is no package."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path


def load_files(paths: Sequence[Path], name: str) -> types.ModuleType:
    """Run files one after the other in one module: a later one replaces names of those before it.

    Nothing is written (no bytecode), and a file that has changed can be loaded again. Raises what a file raises.
    """
    module = sys.modules[name] = types.ModuleType(name)  # dataclasses look their module up there
    for path in paths:
        module.__file__ = str(path)
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
        exec(code, module.__dict__)
    return module
