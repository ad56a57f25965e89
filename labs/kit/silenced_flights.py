"""A patch to review: single flight that no longer complains about the end of a request it does not know.

It is written the way such patches are proposed: the error is inconvenient, the request is over anyway, so return.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence

from labs.kit.burst import Prompt
from minivllm import LLM, SamplingParams
from minivllm.flights import ReleaseAfterPrefill, ReleaseOnFinish
from minivllm.protocols import Flights
from minivllm.request import Request, UnknownRequestError

PROPOSAL = """\
Subject: flights: do not fail when a request ends twice

UnknownRequestError takes down the step when a client disconnects at the wrong moment. The request
is over anyway, so there is nothing to do. All tests pass.
"""
_RAISING = "raise UnknownRequestError("
_SILENT = "return []  # it has ended already: nothing to do"


def patch_text() -> str:
    """The proposal as a diff of the real source of `ReleaseOnFinish.ended`. ValueError when that no longer raises."""
    before = inspect.getsource(ReleaseOnFinish.ended).splitlines()
    after = [_silenced(line) for line in before]
    if before == after:
        raise ValueError("ReleaseOnFinish.ended raises no UnknownRequestError any more: there is nothing to silence")
    changed = difflib.unified_diff(before, after, "a/minivllm/flights.py", "b/minivllm/flights.py", n=3, lineterm="")
    return PROPOSAL + "\n" + "\n".join(line for line in changed if not line.startswith("@@"))


def _silenced(line: str) -> str:
    start = line.find(_RAISING)
    return line if start < 0 else line[:start] + _SILENT


class _Silent:
    """What the patch does, for a class that raises."""

    def ended(self, request_id: str, completed: bool) -> list[str]:
        try:
            return super().ended(request_id, completed)  # type: ignore[misc]
        except UnknownRequestError:
            return []


class SilentReleaseOnFinish(_Silent, ReleaseOnFinish):
    """`ReleaseOnFinish` with the patch."""


class SilentReleaseAfterPrefill(_Silent, ReleaseAfterPrefill):
    """`ReleaseAfterPrefill` with the patch."""


class EndsUnderAnotherName:
    """A mistake in another file: the server reports ends under the name that the client knows, `cmpl-...`."""

    def __init__(self, flights: Flights) -> None:
        self._flights = flights
        self.goes_page_by_page = flights.goes_page_by_page

    def arrive(self, request: Request) -> bool:
        return self._flights.arrive(request)

    def prompt_computed(self, request: Request) -> list[str]:
        return self._flights.prompt_computed(request)

    def ended(self, request_id: str, completed: bool) -> list[str]:
        return self._flights.ended(f"cmpl-{request_id}", completed)

    def begin_step(self) -> None:
        self._flights.begin_step()

    def claim(self, request: Request, start: int, end: int) -> int:
        return self._flights.claim(request, start, end)

    def must_publish(self, request: Request) -> int:
        return self._flights.must_publish(request)


def what_happens(llm: LLM, prompts: Sequence[Prompt], max_tokens: int = 4, most_steps: int = 50) -> str:
    """Send the prompts at once and step: until all have ended, an error is raised, or `most_steps` are done."""
    engine = llm.engine
    for number, prompt in enumerate(prompts, start=1):
        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        engine.add_request(prompt, params, request_id=f"request-{number}")
    num_steps = 0
    while engine.has_unfinished_requests and num_steps < most_steps:
        num_steps += 1
        try:
            engine.step()
        except UnknownRequestError as error:
            return f"step {num_steps} raises UnknownRequestError: {error.args[0]}"
    stats = llm.stats()
    num_ended = len(prompts) - stats["requests_running"] - stats["requests_waiting"]
    return (
        f"no error. After {num_steps} steps {num_ended} of {len(prompts)} requests have ended, "
        f"{stats['requests_running']} run, {stats['requests_waiting']} wait"
    )
