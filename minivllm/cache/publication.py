"""When a filled page may be found by other requests. No tensors."""

from __future__ import annotations

from minivllm.protocols import Moment, Publication


class OnFinish:
    """Pages become findable when the request ends, aborted requests included: their computed pages are valid."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        return num_computed_tokens if moment is Moment.ENDED else 0


class AfterPrefill:
    """The prompt's pages when the whole prompt is computed, those of the answer when the request ends."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        if moment is Moment.ENDED:
            return num_computed_tokens
        return num_prompt_tokens if moment is Moment.COMPUTED and num_computed_tokens >= num_prompt_tokens else 0


class Incremental:
    """After every successful forward pass, each newly completed page."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        return 0 if moment is Moment.SCHEDULED else num_computed_tokens


class OnSchedule:
    """Each page in the step that is going to complete it, before its forward pass.

    So a request that is admitted in the same step attaches what another one is about to compute. That is sound because
    a layer writes the keys and values of the whole step before it attends; and a page whose computation fails is
    withdrawn with all that was built on it.
    """

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        return num_computed_tokens


POLICIES: dict[str, type[Publication]] = {
    "on_finish": OnFinish,
    "after_prefill": AfterPrefill,
    "incremental": Incremental,
    "on_schedule": OnSchedule,
}
