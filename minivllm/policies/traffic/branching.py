"""Traffic in which one prompt is asked many times over, and its answers part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minivllm.policies.access import Access
from minivllm.policies.traffic.workload import ANSWER_TOKENS_PER_S, Tokens, Workload, by_arrival, request


@dataclass(frozen=True)
class SelfConsistency(Workload):
    """One problem sampled several times at once, so that the answers can vote.

    Reusable: the whole prompt, but only once the first sample has computed it; all samples arrive in the same moment,
    so the publication delay decides. Not reusable: the answers, which nobody sends again.
    """

    name: ClassVar[str] = "self-consistency"

    problems: int = 24
    samples: int = 8
    instruction_tokens: int = 100
    problem_tokens: int = 160
    answer_tokens: int = 120
    gap_s: float = 5.0

    def __iter__(self) -> Iterator[Access]:
        instructions = self.text("instructions", self.instruction_tokens)
        for number, now_s in self.starts(self.problems, self.gap_s):
            prompt = instructions + self.text(f"problem {number}", self.problem_tokens)
            for sample in range(self.samples):
                answer = self.text(f"answer {number} {sample}", self.answer_tokens)
                yield request(prompt, answer, now_s, f"problem {number}")


@dataclass(frozen=True)
class TreeSearch(Workload):
    """Tree of thoughts: `width` next thoughts are asked of each kept node, `beam` of them are kept for the next level.

    Reusable: the path to a node, for all that are asked of it; siblings arrive in the same moment with equal prompts,
    and each prompt of the next level ends with a thought that was generated, not sent. Not reusable: the thoughts that
    were dropped, which fill the cache all the same.
    """

    name: ClassVar[str] = "tree-search"

    problems: int = 8
    depth: int = 4
    width: int = 4
    beam: int = 2
    instruction_tokens: int = 100
    problem_tokens: int = 120
    thought_tokens: int = 48
    gap_s: float = 3.0

    def __iter__(self) -> Iterator[Access]:
        starts = self.starts(self.problems, self.gap_s)
        return by_arrival((start_s, self._search(number, start_s)) for number, start_s in starts)

    def _search(self, number: int, now_s: float) -> Iterator[Access]:
        chance = self.chance(f"problem {number}")
        root = self.text("instructions", self.instruction_tokens)
        kept: list[Tokens] = [root + self.text(f"problem {number}", self.problem_tokens)]
        for level in range(self.depth):
            paths = []
            for node, path in enumerate(kept):
                for child in range(self.width):
                    thought = self.text(f"thought {number} {level} {node} {child}", self.thought_tokens)
                    yield request(path, thought, now_s, f"search {number}")
                    paths.append(path + thought)
            kept = [paths[place] for place in sorted(chance.shuffled(range(len(paths)))[: self.beam])]
            now_s += self.thought_tokens / ANSWER_TOKENS_PER_S
