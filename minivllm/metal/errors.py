"""What can go wrong when the runner executes a Metal kernel."""

from __future__ import annotations


class MetalRunnerError(RuntimeError):
    """Something between the source of a kernel and its result. The message says what and where."""


class CompilerMissing(MetalRunnerError):
    """No C++ compiler that the runner can use."""


class KernelCompileError(MetalRunnerError):
    """The text is not a kernel; the message carries the compiler's own lines, numbered as in `source`."""


class AddressSpaceError(KernelCompileError):
    """A pointer is used as if it pointed into another kind of memory; Apple's compiler would refuse it."""


class KernelFault(MetalRunnerError):
    """A thread did what no thread may do. `kind` names it: "race", "out of range", "write to an input", ..."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class KernelNameReused(UserWarning):
    """Two kernels with one name and different texts: MLX looks kernels up by name alone."""
