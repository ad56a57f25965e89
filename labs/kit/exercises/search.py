"""The smallest failing example: a property is tried on many inputs, and a failing one is made as small as it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labs.kit.exercises.part import Wrong


def for_all(num_examples: int = 200, **strategies: Any) -> Callable[[Callable[..., None]], None]:
    """`@for_all(tokens=...)` above a local function runs it at once, on generated arguments, the same in every run.

    What the function raises for the smallest arguments found is raised here, `Wrong` as well as a crash.
    """
    from hypothesis import HealthCheck, Phase, errors, given, settings

    quiet = settings(
        max_examples=num_examples,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )

    def run(holds: Callable[..., None]) -> None:
        try:
            quiet(given(**strategies)(holds))()
        except errors.Flaky:
            raise Wrong(
                "the same question gets different answers",
                expected="an answer that depends on the arguments alone",
                actual="another one when it is asked again",
            ) from None

    return run
