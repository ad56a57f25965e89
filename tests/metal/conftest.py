"""What tests that run kernels start from."""

from __future__ import annotations

import pytest

from minivllm.metal.compiler import Compiler, find_compiler
from minivllm.metal.errors import CompilerMissing


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """The C++ compiler of this machine; without one there is nothing to run a kernel with."""
    try:
        return find_compiler()
    except CompilerMissing as error:
        pytest.skip(str(error))
