"""How often a group of requests is repeated, and when it is enough.

Times are noisy, so the clock needs several groups, and more of them where the machine is busy. Looking at the same
measurement several times, and stopping at the first look that pleases, would make wrong verdicts likelier than an
interval says. So there are few looks, planned beforehand, and each one's interval is wide enough for all of them
together: with k looks at 1 - 0.05/k, all k intervals hold at the same time with at least 95 % (Bonferroni's
inequality). A wrong verdict needs more than an interval that is wrong: the bounds of the verdict lie far from no effect
and from full reuse. Stopping for time looks at no result, and costs nothing of that.

The look after one group asks for more than any confidence: each of its ratios must be on the same side. Before the
clock says that nothing was reused, a few short prompts show how much of the time is spent on the prompt at all.

A measurement ends at a look

- after one group, when the server's own counts are there and agree with the clock;
- after three or more, when the clock has told, or when the counts have and the clock cannot;
- at any, when it is contaminated, or when no number of groups could help: prompts that are too short for a clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from labbook.errors import UsageError
from labbook.statistics import CONFIDENCE

LOOKS = (1, 3, 6, 12, 20)
MOST_GROUPS = 1000


@dataclass(frozen=True)
class Repeats:
    """The looks of one measurement, as numbers of groups, and the confidence of the interval at each."""

    looks: tuple[int, ...]
    is_fixed: bool

    @property
    def confidence(self) -> float:
        return 1 - (1 - CONFIDENCE) / len(self.looks)

    @property
    def rule(self) -> str:
        """What was decided before the first request, in words."""
        if self.is_fixed:
            groups = "1 group" if self.looks[0] == 1 else f"{self.looks[0]} groups"
            return f"{groups}, decided beforehand; one look at {self.confidence:.0%} confidence"
        looks = ", ".join(map(str, self.looks[:-1]))
        return (
            f"groups are added until the verdict is settled, looked at after {looks} or {self.looks[-1]}; each look "
            f"has {self.confidence:.0%} confidence, so that all together have at least {CONFIDENCE:.0%}"
        )


def repeats_for(asked: int | None) -> Repeats:
    """`asked` groups and one look; None takes as many as are needed. Raises UsageError."""
    if asked is None:
        return Repeats(LOOKS, is_fixed=False)
    if not 1 <= asked <= MOST_GROUPS:
        raise UsageError(f"repeats is {asked}: give 1 to {MOST_GROUPS}, or leave it out to repeat as often as needed")
    return Repeats((asked,), is_fixed=True)
