"""Lab 06, a solution: three answers to one question, and the clean-up of the fourth."""

from __future__ import annotations

from collections.abc import Mapping, Set

from minivllm.protocols import Moment


class OnFinish:
    """Pages can be found when the request is over: finished or aborted, what was computed is good."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        return num_computed_tokens if moment is Moment.ENDED else 0


class AfterPrefill:
    """The prompt's pages when the whole prompt is computed; those of the answer when the request is over."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        if moment is Moment.ENDED:
            return num_computed_tokens
        prompt_is_computed = moment is Moment.COMPUTED and num_computed_tokens >= num_prompt_tokens
        return num_prompt_tokens if prompt_is_computed else 0


class Incremental:
    """Every page as soon as it is computed."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        return 0 if moment is Moment.SCHEDULED else num_computed_tokens


def withdraw(failed: Set[int], parent_of: Mapping[int, int | None]) -> list[int]:
    """The pages to remove from the index when the computation of `failed` has failed, children before their parents.

    `parent_of` holds every page in the index; the first page of a sequence has the parent None.
    """

    def way_up(page_id: int) -> list[int]:
        parent = parent_of[page_id]
        return [page_id] if parent is None else [page_id, *way_up(parent)]

    lost = [page_id for page_id in parent_of if failed & set(way_up(page_id))]
    return sorted(lost, key=lambda page_id: len(way_up(page_id)), reverse=True)
