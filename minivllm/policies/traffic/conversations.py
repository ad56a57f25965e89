"""Traffic in which each prompt is the last one, its answer, and something new at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minivllm.policies.access import Access
from minivllm.policies.traffic.workload import ANSWER_TOKENS_PER_S, Workload, by_arrival, request


@dataclass(frozen=True)
class Chat(Workload):
    """People who chat with one assistant: a common system message, then turns with pauses to read and type.

    Reusable: everything up to the last question, the answers included, for whoever is still cached after the pause;
    the system message for everybody. A cache that keeps prompts but no answers finds the history only up to the last
    answer. Not reusable: one person's history for another. Lengths of questions and answers are means.
    """

    name: ClassVar[str] = "chat"

    sessions: int = 24
    turns: int = 6
    system_tokens: int = 160
    question_tokens: int = 40
    answer_tokens: int = 100
    gap_s: float = 4.0
    pause_s: float = 20.0

    def __iter__(self) -> Iterator[Access]:
        return by_arrival((start_s, self._session(n, start_s)) for n, start_s in self.starts(self.sessions, self.gap_s))

    def _session(self, number: int, now_s: float) -> Iterator[Access]:
        chance = self.chance(f"session {number}")
        history = self.text("system", self.system_tokens)
        for turn in range(self.turns):
            history += self.text(f"question {number} {turn}", chance.about(self.question_tokens))
            answer = self.text(f"answer {number} {turn}", chance.about(self.answer_tokens))
            yield request(history, answer, now_s, f"chat {number}")
            history += answer
            now_s += len(answer) / ANSWER_TOKENS_PER_S + chance.wait_s(self.pause_s)


@dataclass(frozen=True)
class Agent(Workload):
    """Agents that work through a task: a long system message with the tools, then calls and the tools' results.

    Each step sends everything again, so that without a cache the work grows with the square of the steps. Reusable:
    all of it but the last result, and soon, since no person pauses in between; the system message for every task. Not
    reusable: nothing that a tool returned to another task. Lengths of results are means.
    """

    name: ClassVar[str] = "agent"

    tasks: int = 10
    steps: int = 10
    system_tokens: int = 320
    task_tokens: int = 48
    call_tokens: int = 32
    result_tokens: int = 120
    gap_s: float = 6.0
    tool_s: float = 1.0

    def __iter__(self) -> Iterator[Access]:
        return by_arrival((start_s, self._task(n, start_s)) for n, start_s in self.starts(self.tasks, self.gap_s))

    def _task(self, number: int, now_s: float) -> Iterator[Access]:
        chance = self.chance(f"task {number}")
        history = self.text("system and tools", self.system_tokens) + self.text(f"task {number}", self.task_tokens)
        for step in range(self.steps):
            call = self.text(f"call {number} {step}", self.call_tokens)
            yield request(history, call, now_s, f"task {number}")
            history += call + self.text(f"result {number} {step}", chance.about(self.result_tokens))
            now_s += len(call) / ANSWER_TOKENS_PER_S + chance.wait_s(self.tool_s)
