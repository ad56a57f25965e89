"""A prediction that was written down. It may be revised until its measurement begins, and every version stays."""

from __future__ import annotations

from dataclasses import dataclass

from labbook.record import Record
from labs.kit.predictions import Prediction


@dataclass(eq=False)
class Guess:
    """`prediction` is its latest version and `record` the labbook's record of that; closed when it is measured."""

    prediction: Prediction
    record: Record
    is_open: bool = True

    @property
    def topic(self) -> str:
        return self.prediction.topic

    @property
    def is_default(self) -> bool:
        """True as long as nobody has set it: it is what the notebook came with."""
        return bool(self.record["is_default"])

    @property
    def sentence(self) -> str:
        """What is written down, and whose it is."""
        whose = "the notebook's placeholder, not yet yours" if self.is_default else "yours"
        return f"Written down: {self.prediction} ({whose})."
