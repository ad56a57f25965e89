"""One answer: when it ends, why, and what each report says is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from labs.kit.toy_engine import LetterDecoder
from minivllm.answer import Answer, add_prompt_logprobs
from minivllm.config import SamplingParams
from minivllm.request import Request

VOCABULARY = 30
EOS = 29


class LetterTokenizer:
    """Token 0 is "a", 1 is "b", and so on; 29 ends the text."""

    eos_token_ids = frozenset({EOS})

    def stream_decoder(self) -> LetterDecoder:
        return LetterDecoder()


def one_hot(token_id: int) -> np.ndarray:
    logits = np.zeros(VOCABULARY, np.float32)
    logits[token_id] = 9.0
    return logits


def answer_with(tokens: Sequence[int], **settings: Any) -> tuple[Request, Answer, tuple[str, Any] | None]:
    """Feed tokens until the answer ends; returns the reason, None when it has not ended."""
    params = SamplingParams(temperature=0, **{"max_tokens": 20, **settings})
    request = Request("r", [1, 2, 3], params, None, 0.0)
    answer = Answer(request, LetterTokenizer())  # type: ignore[arg-type]
    reason = None
    for token_id in tokens:
        answer.add_token(one_hot(token_id))
        reason = answer.end_reason()
        if reason is not None:
            break
    answer.finish()
    return request, answer, reason


def test_an_answer_goes_on_until_something_ends_it() -> None:
    assert answer_with([0, 1, 2])[2] is None


def test_an_answer_ends_with_its_last_allowed_token() -> None:
    request, answer, reason = answer_with([0, 1, 2, 3], max_tokens=3)
    assert reason == ("length", None)
    assert (request.output_token_ids, answer.report().text) == ([0, 1, 2], "abc")


def test_the_end_of_text_stops_the_answer_shows_nothing_and_is_no_reason_of_the_callers() -> None:
    request, answer, reason = answer_with([0, EOS, 1])
    assert reason == ("stop", None)
    assert (request.output_token_ids, answer.report().text) == ([0, EOS], "a")


def test_the_end_of_text_can_be_ignored() -> None:
    request, answer, reason = answer_with([0, EOS, 1], ignore_eos=True, max_tokens=3)
    assert reason == ("length", None)
    assert (request.output_token_ids, answer.report().text) == ([0, EOS, 1], "adb")


def test_a_stop_token_of_the_caller_is_the_reason_also_when_the_end_of_text_is_ignored() -> None:
    assert answer_with([0, 7, 1], stop_token_ids=[7])[2] == ("stop", 7)
    assert answer_with([0, EOS, 1], stop_token_ids=[EOS], ignore_eos=True)[2] == ("stop", EOS)


def test_a_stop_string_is_the_reason_and_is_not_shown() -> None:
    request, answer, reason = answer_with([0, 1, 2, 3], stop=["bc"])
    assert reason == ("stop", "bc")
    assert (request.output_token_ids, answer.report().text) == ([0, 1, 2], "a")


@pytest.mark.parametrize(
    ("last", "settings", "right"),
    [(EOS, {}, ("stop", None)), (7, {"stop_token_ids": [7]}, ("stop", 7)), (2, {"stop": ["c"]}, ("stop", "c"))],
)
def test_a_stop_at_the_last_allowed_token_is_a_stop(
    last: int, settings: dict[str, Any], right: tuple[str, Any]
) -> None:
    assert answer_with([0, 1, last], max_tokens=3, **settings)[2] == right


def test_text_held_back_for_a_stop_string_comes_with_the_end() -> None:
    _, answer, reason = answer_with([0, 1], stop=["bcd"], max_tokens=2)
    assert reason == ("length", None)
    assert answer.report().text == "ab"


def test_a_stop_string_that_only_the_end_completes_is_the_reason() -> None:
    class Late(LetterDecoder):
        """The last letter is an incomplete character until the end is told."""

        held = ""

        def add(self, token_id: int) -> str:
            before, self.held = self.held, super().add(token_id)
            return before

        def flush(self) -> str:
            rest, self.held = self.held, ""
            return rest

    class LateTokenizer(LetterTokenizer):
        def stream_decoder(self) -> LetterDecoder:
            return Late()

    request = Request("r", [1], SamplingParams(temperature=0, max_tokens=2, stop=["b"]), None, 0.0)
    answer = Answer(request, LateTokenizer())  # type: ignore[arg-type]
    for token_id in (0, 1):
        answer.add_token(one_hot(token_id))
    assert answer.end_reason() == ("stop", "b")
    assert answer.report().text == "a"


def test_each_report_says_what_is_new_since_the_last_one() -> None:
    request = Request("r", [1], SamplingParams(temperature=0, stop=["bx"]), None, 0.0)
    answer = Answer(request, LetterTokenizer())  # type: ignore[arg-type]
    reports = []
    for token_id in (0, 1, 2):
        answer.add_token(one_hot(token_id))
        reports.append(answer.report())
    assert [report.new_token_ids for report in reports] == [(0,), (1,), (2,)]
    assert [report.new_text for report in reports] == ["a", "", "bc"]
    assert [report.text for report in reports] == ["a", "a", "abc"]
    assert answer.report().new_token_ids == ()
    assert request.metrics.output_tokens == 3


@pytest.mark.parametrize("num_alternatives", [0, 2])
def test_there_is_one_log_probability_for_each_token(num_alternatives: int) -> None:
    request, _, _ = answer_with([0, 5, EOS], logprobs=num_alternatives)
    assert request.logprobs is not None
    assert [shown.token_id for shown in request.logprobs] == [0, 5, EOS]
    assert [len(shown.top) for shown in request.logprobs] == [num_alternatives] * 3


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 9])
def test_prompt_log_probabilities_are_one_for_each_token_however_the_prompt_is_cut(chunk: int) -> None:
    prompt = [4, 8, 15, 16, 23]
    request = Request("r", prompt, SamplingParams(prompt_logprobs=1), None, 0.0)
    rows = np.stack([one_hot(token_id) for token_id in [8, 15, 16, 23, 1]])  # row i foresees token i + 1
    for start in range(0, 5, chunk):
        add_prompt_logprobs(request, start, rows[start : start + chunk])
    assert request.prompt_logprobs is not None and request.prompt_logprobs[0] is None
    shown = [entry for entry in request.prompt_logprobs[1:] if entry is not None]
    assert [entry.token_id for entry in shown] == [8, 15, 16, 23]
    assert [entry.top[0][0] for entry in shown] == [8, 15, 16, 23]
    assert all(entry.logprob > -0.01 for entry in shown), "each token is judged by the row before it"


def test_decoding_adds_no_prompt_log_probability() -> None:
    request = Request("r", [4], SamplingParams(prompt_logprobs=1), None, 0.0)
    request.token_ids.append(7)
    add_prompt_logprobs(request, 1, one_hot(3)[None])
    assert request.prompt_logprobs == [None]
