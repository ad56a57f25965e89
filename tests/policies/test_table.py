"""The table of workloads by designs, and its surprises: every sentence is borne out by the numbers it speaks of."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from minivllm.policies.access import Access
from minivllm.policies.designs import Setup
from minivllm.policies.replay import replay
from minivllm.policies.surprises import EXPLANATIONS, Surprise, as_markdown, surprises
from minivllm.policies.table import RERANKED, SETTINGS, SMOLLM2_135M, Room, Table, ideal_ratio, make_table
from minivllm.policies.traffic import WORKLOADS, make
from minivllm.policies.traffic.variations import swapped, with_prefixes_sent_first


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table()


@pytest.fixture(scope="module")
def found(table: Table) -> list[Surprise]:
    return [explain(table) for explain in EXPLANATIONS]


def test_eight_workloads_stand_against_five_designs_and_retrieval_twice(table: Table) -> None:
    assert [row.name for row in table.rows if row.name != RERANKED] == list(WORKLOADS)
    assert [len(row.found) for row in table.rows] == [5] * 9
    assert list(table.rows[0].found) == ["slot", "block-hash", "radix", "whole-cache", "file"]


@pytest.mark.parametrize("design", SETTINGS)
def test_every_design_has_the_same_bytes(table: Table, design: str) -> None:
    room = table.room
    assert room.setup(design).capacity_units == room.capacity_tokens == 8192
    assert room.capacity_tokens * SMOLLM2_135M.bytes_per_token == room.kv_cache_bytes


@pytest.mark.parametrize("design", SETTINGS)
def test_no_design_ever_holds_more_than_its_room(table: Table, design: str) -> None:
    for row in table.rows:
        assert table.room.replay(row.workload, design).stats.held_units <= table.room.capacity_tokens


def test_nothing_is_better_than_the_ideal_and_endless_trees_reach_it(table: Table) -> None:
    for row in table.rows:
        assert all(0 <= share <= row.ideal for share in row.found.values())
    endless = make_table(Room(kv_cache_bytes=10**12))
    assert all(row.found["radix"] == row.ideal for row in endless.rows)


def test_a_cell_is_the_replay_of_its_workload_through_its_design(table: Table) -> None:
    alone = replay(make("document"), Setup("radix", capacity_units=8192).build())
    assert table.row("document").found["radix"] == alone.tally.hit_ratio_tokens


def test_the_table_is_plain_values_and_markdown_that_a_notebook_shows(table: Table) -> None:
    records, lines = table.as_records(), table.as_markdown().splitlines()
    assert lines[0] == "| workload | slot | block-hash | radix | whole-cache | file | ideal |"
    for record, line in zip(records, lines[2:11], strict=True):
        name, *shares = [cell.strip() for cell in line.strip("|").split("|")]
        assert [name, *map(float, shares)] == [record["workload"], *(round(record[key], 2) for key in list(record)[1:])]
    assert "180 MiB" in lines[-1] and "8,192 tokens of 23040 bytes" in lines[-1]
    assert table._repr_markdown_() == table.as_markdown()


@pytest.mark.parametrize("number", range(len(EXPLANATIONS)))
def test_the_numbers_bear_every_sentence_out(found: list[Surprise], number: int) -> None:
    assert found[number].holds, found[number]


def test_they_do_for_another_seed_too() -> None:
    other = make_table(seed=1)
    assert len(surprises(other)) == len(EXPLANATIONS)


def test_what_is_seen_is_in_the_row(table: Table, found: list[Surprise]) -> None:
    for surprise in found:
        row = table.row(surprise.row)
        shares = {f"{share:.2f}" for share in (*row.found.values(), row.ideal)}
        seen = re.findall(r"\d\.\d\d", surprise.seen)
        assert seen and set(seen) <= shares, surprise.seen


def test_every_workload_whose_designs_differ_has_its_reason(table: Table, found: list[Surprise]) -> None:
    explained = {surprise.row for surprise in found}
    for row in table.rows:
        shares = [share for design, share in row.found.items() if design not in ("slot", "file")]
        assert max(shares) - min(shares) < 0.15 or row.name in explained, row


def test_a_reason_that_no_longer_holds_is_not_given() -> None:
    roomy = make_table(Room(kv_cache_bytes=10**9))
    kept = {surprise.row for surprise in surprises(roomy)}
    assert "document" not in kept, "with room for everything, no design loses a document"
    assert "chat" in kept, "slots lose even then"


def test_later_publication_takes_away_what_samples_share() -> None:
    late = make_table(Room(publication_delay_s=1.0))
    assert late.row("self-consistency").found["radix"] < 0.4
    assert "self-consistency" not in {surprise.row for surprise in surprises(late)}, "it is no surprise any more"
    assert "findable 1 s after its arrival" in late.caption()


def test_surprises_are_a_list_of_sentences(found: list[Surprise]) -> None:
    lines = as_markdown(found).splitlines()
    assert len(lines) == len(EXPLANATIONS)
    assert lines[0].startswith("- **chat**: four slots find 0.32 where the tree finds 0.80. The common system message")


def test_a_room_smaller_than_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match="kv_cache_bytes is 100: one token of this model takes 23040"):
        Room(kv_cache_bytes=100)


def prompt(text: str, session: str = "s") -> Access:
    return Access(tuple(map(ord, text)), len(text), (1, 2), 2, session=session)


def test_swapping_moves_one_stretch_behind_the_next() -> None:
    (changed,) = swapped([prompt("aabbbcc")], first_tokens=2, second_tokens=3)
    assert changed == replace(prompt("aabbbcc"), unit_ids=tuple(map(ord, "bbbaacc")))


def test_what_a_session_has_in_common_can_be_sent_first() -> None:
    traffic = [prompt("abc"), prompt("xyz", "t"), prompt("abd"), prompt("k", "u"), prompt("xyz", "t"), prompt("w", "u")]
    sent = [("".join(map(chr, a.unit_ids)), a.num_output_tokens) for a in with_prefixes_sent_first(traffic)]
    assert sent == [("ab", 0), ("abc", 2), ("xyz", 0), ("xyz", 2), ("abd", 2), ("k", 2), ("xyz", 2), ("w", 2)]


def test_the_ideal_is_by_hand_what_was_ever_sent_before() -> None:
    """'abd' shares 2 tokens with 'abc', and 'ab' both of its own: 4 of 8."""
    traffic = [prompt("abc"), prompt("abd"), prompt("ab")]
    assert ideal_ratio(traffic) == 4 / 8
