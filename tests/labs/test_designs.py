from __future__ import annotations

from labs.kit.designs import ENGINES, capacity_rows, found_by_engine, found_by_eviction
from minivllm.policies.table import Room
from minivllm.policies.traffic import make

CHAT = make("chat", 0, sessions=4, turns=3)


def test_every_design_sees_every_prompt_token() -> None:
    tallies = found_by_engine(CHAT, Room())
    assert list(tallies) == list(ENGINES)
    assert {tally.num_tokens for tally in tallies.values()} == {sum(access.num_input_tokens for access in CHAT)}


def test_there_is_a_row_for_each_design_and_capacity() -> None:
    rows = capacity_rows(CHAT, Room(), [512, 1024])
    assert len(rows) == 2 * len(ENGINES) and {row["capacity_blocks"] for row in rows} == {512, 1024}
    assert {row["design"] for row in rows} == {"vLLM", "SGLang", "llama-server", "mlx-lm"}


def test_nobody_finds_more_than_the_one_who_has_read_the_future() -> None:
    shares = found_by_eviction(CHAT, Room(), ("lru-head-first", "lru", "belady"), tokens=1024)
    assert shares["lru-head-first"] < shares["lru"] <= shares["belady"] < 1
