"""What a server has counted since it started, in tokens, requests and seconds: the numbers of its /metrics page."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


@dataclass
class Tally:
    """`queried_tokens` and `hit_tokens` are what the page tells, which a fault may make different from what was done.

    Every prompt token is in `prompt_tokens`, whether it was computed or not.
    """

    num_requests: int = 0
    queried_tokens: int = 0
    hit_tokens: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    longest_tokens: int = 0
    prompt_s: float = 0.0
    decode_s: float = 0.0
    started_at_s: float = field(default_factory=time.time)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def computed_tokens(self) -> int:
        return self.prompt_tokens - self.hit_tokens

    def add(
        self,
        *,
        queried_tokens: int,
        hit_tokens: int,
        prompt_tokens: int,
        generated_tokens: int,
        prompt_s: float,
        decode_s: float,
    ) -> None:
        with self._lock:
            self.num_requests += 1
            self.queried_tokens += queried_tokens
            self.hit_tokens += hit_tokens
            self.prompt_tokens += prompt_tokens
            self.generated_tokens += generated_tokens
            self.longest_tokens = max(self.longest_tokens, prompt_tokens + generated_tokens)
            self.prompt_s += prompt_s
            self.decode_s += decode_s
