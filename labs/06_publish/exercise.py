"""Lab 06: when a page may be seen. The question is in README.md; `labs check 06` says how far you are."""

from __future__ import annotations

from collections.abc import Mapping, Set

from minivllm.protocols import Moment


def slow_is_safe(moment: Moment, num_computed_tokens: int, position: int) -> bool:
    """What safe means, slowly: the keys and values of the token at this position exist."""
    return moment is not Moment.SCHEDULED and position < num_computed_tokens


class OnFinish:
    """Pages can be found when the request is over: finished or aborted, what was computed is good."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        raise NotImplementedError("OnFinish is not written yet")


class AfterPrefill:
    """The prompt's pages when the whole prompt is computed; those of the answer when the request is over."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        raise NotImplementedError("AfterPrefill is not written yet")


class Incremental:
    """Every page as soon as it is computed."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        raise NotImplementedError("Incremental is not written yet")


def withdraw(failed: Set[int], parent_of: Mapping[int, int | None]) -> list[int]:
    """The pages to remove from the index when the computation of `failed` has failed, children before their parents.

    `parent_of` holds every page in the index; the first page of a sequence has the parent None.
    """
    raise NotImplementedError("withdraw is not written yet")
