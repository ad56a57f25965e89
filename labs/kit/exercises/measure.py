"""A real model on what a learner wrote, beside the engine's own component: the same requests, counted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labbook.prompts import question, synthetic_text
from labbook.record import Record
from labs.kit.exercises import history
from labs.kit.exercises.judge import TimeIsUp, limited
from labs.kit.exercises.lab import Lab, LabError
from labs.kit.exercises.loading import load_files
from labs.kit.exercises.part import Answer
from labs.kit.parameters import DEFAULT_MODEL
from labs.kit.table import text_table

MEASURED = "lab-measure"
PREFIX_WORDS, MAX_TOKENS = 120, 8
POOL_IN_PROMPTS, NUM_ROUNDS, LIMIT_S = 4, 6, 300
"""Room for so many of the prompts: too little for all of them, so that something has to go."""
COUNTERS = ("queried_tokens", "restored_tokens", "computed_prefill_tokens", "published_tokens", "evicted_tokens")


def measured(lab: Lab, path: Path, labbook: Path, model: str | None = None) -> Record:
    """Run the traffic on the engine and on the learner's component, and append the record. Raises LabError."""
    if not lab.components:
        raise LabError(f"lab {lab.key} writes no part of the engine: `labs measure` is for labs 01, 02, 03, 06 and 07")
    from minivllm import EngineConfig
    from minivllm.models.errors import ModelError
    from minivllm.models.loading import load_model

    try:
        loaded = load_model(model or os.environ.get("LAB_MODEL") or DEFAULT_MODEL)
    except ModelError as error:
        raise LabError(str(error)) from None
    config = EngineConfig(num_pages=_num_pages(loaded), single_flight="release_after_prefill")
    counted = {
        "the engine's": _counted(loaded, config, {}),
        "yours": _of_the_learner(lab, path, labbook, loaded, config),
    }
    return history.note(
        labbook,
        MEASURED,
        lab,
        model=loaded.name,
        components=sorted(lab.components),
        num_pages=config.num_pages,
        counted=counted,
        same_answers=counted["the engine's"]["answers"] == counted["yours"]["answers"],
    )


def _num_pages(loaded: Any) -> int:
    longest = len(loaded.tokenizer.encode(f"{synthetic_text(PREFIX_WORDS, 0)} {question(1)}")) + MAX_TOKENS
    return POOL_IN_PROMPTS * (longest // 16 + 2)


def _of_the_learner(lab: Lab, path: Path, labbook: Path, loaded: Any, config: Any) -> dict[str, Any]:
    """The same on what the learner wrote. What goes wrong in it is told in one line; `labs check` tells more."""
    try:
        with limited(LIMIT_S):
            answer = Answer(vars(load_files([path], f"lab_{lab.number}_answer")), labbook)
            mine = {name: make(answer, config) for name, make in lab.components.items()}
            return _counted(loaded, config, mine)
    except (Exception, SystemExit, TimeIsUp) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LabError(f"the engine cannot run on {path.name} ({why}): `labs check {lab.number}` shows more") from None


def _counted(loaded: Any, config: Any, components: Mapping[str, Any]) -> dict[str, Any]:
    """Two hot texts that keep coming back with other questions, twins among them, between texts that come once."""
    from minivllm import LLM, SamplingParams

    greedy = SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0)
    texts = [synthetic_text(PREFIX_WORDS, seed) for seed in range(2 + NUM_ROUNDS)]
    answers = []
    with LLM(loaded, config, components) as llm:
        for number in range(NUM_ROUNDS):
            hot = f"{texts[number % 2]} {question(number + 1)}"
            answers += llm.generate([hot, hot], greedy)
            answers += llm.generate([texts[2 + number]], greedy)
        stats = llm.stats()
    return {**{name: stats[name] for name in COUNTERS}, "answers": [list(output.token_ids) for output in answers]}


def as_text(record: Record) -> str:
    """The counters side by side, and whether the answers are the same."""
    rows = [[name.replace("_", " "), *(counts[name] for counts in record["counted"].values())] for name in COUNTERS]
    table = text_table(["on " + record["model"], *record["counted"]], rows)
    words = "The answers are the same, token by token." if record["same_answers"] else "The answers DIFFER."
    ran = f"{', '.join(record['components'])} of yours ran in the real engine; the record is kept."
    return f"{table}\n\n{words} {_reading(record['counted'])}\n{ran}"


def _reading(counted: Mapping[str, Mapping[str, int]]) -> str:
    """What the numbers say, in one sentence."""
    ours, mine = (counts["restored_tokens"] for counts in counted.values())
    if mine == ours:
        return "Yours restores as many tokens as the engine's."
    if mine < ours:
        return f"Yours restores {ours - mine:,} tokens fewer: it misses pages, or throws away what comes back."
    return f"Yours restores {mine - ours:,} tokens more, on this traffic."
