"""A real model on what a learner wrote, beside the engine's own component: the same requests, counted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labbook.prompts import question, synthetic_text
from labbook.record import Record
from labs.kit.exercises import history
from labs.kit.exercises.lab import Lab, LabError
from labs.kit.exercises.loading import load_files
from labs.kit.exercises.part import Answer
from labs.kit.parameters import DEFAULT_MODEL
from labs.kit.table import text_table

MEASURED = "lab-measure"
PREFIX_WORDS, MAX_TOKENS = 120, 8
POOL_IN_PROMPTS = 3
"""Room for so many of the prompts: too little for all of them, so that something has to go."""
COUNTERS = ("queried_tokens", "restored_tokens", "computed_prefill_tokens", "published_tokens", "evicted_tokens")


def measured(lab: Lab, path: Path, labbook: Path, model: str | None = None) -> Record:
    """Run the traffic on the engine and on the learner's component, and append the record. Raises LabError.

    What the learner's code raises, it raises here.
    """
    if not lab.components:
        raise LabError(f"lab {lab.key} writes no part of the engine: `labs measure` is for labs 01, 02, 03, 06 and 07")
    from minivllm import EngineConfig
    from minivllm.models.errors import ModelError
    from minivllm.models.loading import load_model

    answer = Answer(vars(load_files([path], f"lab_{lab.number}_answer")), labbook)
    try:
        loaded = load_model(model or os.environ.get("LAB_MODEL") or DEFAULT_MODEL)
    except ModelError as error:
        raise LabError(str(error)) from None
    config = EngineConfig(num_pages=_num_pages(loaded), single_flight="release_after_prefill")
    mine = {name: make(answer, config) for name, make in lab.components.items()}
    counted = {"the engine's": _counted(loaded, config, {}), "yours": _counted(loaded, config, mine)}
    return history.note(
        labbook,
        MEASURED,
        lab,
        model=loaded.name,
        components=sorted(mine),
        num_pages=config.num_pages,
        counted=counted,
        same_answers=counted["the engine's"]["answers"] == counted["yours"]["answers"],
    )


def _num_pages(loaded: Any) -> int:
    longest = len(loaded.tokenizer.encode(f"{synthetic_text(PREFIX_WORDS, 0)} {question(1)}")) + MAX_TOKENS
    return POOL_IN_PROMPTS * (longest // 16 + 2)


def _counted(loaded: Any, config: Any, components: Mapping[str, Any]) -> dict[str, Any]:
    """A cold and two warm requests, twins over a second text, then as much other text as drives out the first."""
    from minivllm import LLM, SamplingParams

    greedy = SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0)
    texts = [synthetic_text(PREFIX_WORDS, seed) for seed in range(6)]
    with LLM(loaded, config, components) as llm:
        answers = [llm.generate([f"{texts[0]} {question(number)}"], greedy)[0] for number in (1, 2, 3)]
        answers += llm.generate([texts[1], texts[1]], greedy)
        for text in (*texts[2:], texts[0]):
            answers += llm.generate([text], greedy)
        stats = llm.stats()
    return {**{name: stats[name] for name in COUNTERS}, "answers": [list(output.token_ids) for output in answers]}


def as_text(record: Record) -> str:
    """The counters side by side, and whether the answers are the same."""
    rows = [[name.replace("_", " "), *(counts[name] for counts in record["counted"].values())] for name in COUNTERS]
    table = text_table(["on " + record["model"], *record["counted"]], rows)
    words = "The answers are the same, token by token." if record["same_answers"] else "The answers DIFFER."
    return f"{table}\n\n{words} {', '.join(record['components'])} of yours ran in the real engine; the record is kept."
