"""An agent's conversation, written in advance, so that every run sends the same tokens.

Step 1 sends the system prompt with the tools and the task. Every later step sends all of that again, with one more tool
call and its result at the end:

    step 1   [ system, tools | task ]
    step 2   [ system, tools | task | call, result ]
    step 3   [ system, tools | task | call, result | call, result ]
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from labbook.prompts import Message, synthetic_text
from minivllm.models.tokenizer import Tokenizer

INSTRUCTIONS = "You are an agent in an archive. Call one tool at a time until the task is done."
TOOLS = [
    {"name": "read_page", "description": "Read one page.", "parameters": {"page": "integer"}},
    {"name": "answer", "description": "End the task.", "parameters": {"text": "string"}},
]
TASK = "Find the page that names the bridge."


@dataclass(frozen=True)
class AgentLoop:
    """`result_words` is the length of each tool's result. Steps count from 1."""

    num_steps: int
    result_words: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_steps < 1 or self.result_words < 1:
            raise ValueError(f"{self.num_steps} steps with results of {self.result_words} words: both are at least 1")

    def messages(self, step: int, *, clock_in_front: bool = False, clock_at_end: bool = False) -> list[Message]:
        """What step `step` sends. A clock in front is that of this step; one at the end stays with its result."""
        system = f"{INSTRUCTIONS}\nTools: {json.dumps(TOOLS)}"
        if clock_in_front:
            system = f"{time_of(step)} {system}"
        told: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": TASK}]
        for number in range(1, step):
            call = json.dumps({"tool": "read_page", "page": number})
            result = f"Page {number}: {synthetic_text(self.result_words, self.seed + number)}"
            if clock_at_end:
                result = f"{result} {time_of(number)}"
            told += [{"role": "assistant", "content": call}, {"role": "user", "content": result}]
        return told

    def prompts(
        self, tokenizer: Tokenizer, *, clock_in_front: bool = False, clock_at_end: bool = False
    ) -> list[list[int]]:
        """The token ids that each step sends, rendered with the model's chat template."""
        return [
            tokenizer.encode_chat(self.messages(step, clock_in_front=clock_in_front, clock_at_end=clock_at_end))
            for step in range(1, self.num_steps + 1)
        ]

    def transcript(self) -> str:
        """What the last step sends, as one text."""
        return "\n".join(message["content"] for message in self.messages(self.num_steps))


def time_of(step: int) -> str:
    """The clock when a step is sent: one minute for each."""
    return f"It is {9 + step // 60:02}:{step % 60:02}."
