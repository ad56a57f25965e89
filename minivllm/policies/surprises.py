"""What in the table one would not expect, and why: each reason is an experiment that takes the cause away.

A sentence is made from the numbers it speaks of, and `holds` says whether they bear it out. Under other conditions
than the table's defaults some do not; those are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, cast

from minivllm.policies.access import Access
from minivllm.policies.replay import Replay
from minivllm.policies.table import RERANKED, Table
from minivllm.policies.traffic import make
from minivllm.policies.traffic.branching import SelfConsistency
from minivllm.policies.traffic.conversations import Chat
from minivllm.policies.traffic.shared_prefixes import Preamble
from minivllm.policies.traffic.variations import swapped, with_prefixes_sent_first
from minivllm.policies.whole_caches import WholeCacheLRU

ALIKE, APART = 0.02, 0.1
ENDLESS = 10**9


@dataclass(frozen=True)
class Surprise:
    """`seen` is what the table shows, `because` the reason with the experiment that shows it."""

    row: str
    seen: str
    because: str
    holds: bool


def surprises(table: Table) -> list[Surprise]:
    """Those that hold in this table, in the order of its rows."""
    found = [explain(table) for explain in EXPLANATIONS]
    return [surprise for surprise in found if surprise.holds]


def as_markdown(found: Iterable[Surprise]) -> str:
    return "\n".join(f"- **{one.row}**: {one.seen} {one.because}" for one in found)


def chat_in_slots(table: Table) -> Surprise:
    row = table.row("chat")
    chat, slot, radix = cast(Chat, row.workload), row.found["slot"], row.found["radix"]
    num_slots = chat.sessions
    room_tokens = num_slots * table.room.capacity_tokens // 4
    more = _found(table, chat, "slot", num_slots=num_slots, capacity_units=room_tokens)
    choosy = _found(table, chat, "slot", num_slots=num_slots, capacity_units=room_tokens, similarity=0.8)
    longest = max(access.num_input_tokens for access in chat)
    is_one_slot_used = table.room.replay(chat, "slot").stats.held_units <= max(len(a.kept_ids) for a in chat)
    return Surprise(
        row.name,
        f"four slots find {slot:.2f} where the tree finds {radix:.2f}.",
        f"The common system message is at least {chat.system_tokens / longest:.0%} of every prompt, and 10% that agree "
        "make a slot fit, so each person is given the slot of the last one, and the others stay empty: "
        f"{num_slots} slots of that size, one for everybody, find {more:.2f}. When 80% has to agree, {choosy:.2f}.",
        radix - slot > APART and is_one_slot_used and _alike(more, slot) and choosy - more > APART,
    )


def chat_from_files(table: Table) -> Surprise:
    row = table.row("chat")
    chat, found = cast(Chat, row.workload), row.found["file"]
    saved: dict[str | None, int] = {}
    reused_tokens = asked_tokens = 0
    for access in chat:
        reused_tokens += saved.get(access.session, 0)
        asked_tokens += access.num_input_tokens
        saved.setdefault(access.session, access.num_input_tokens)
    return Surprise(
        row.name,
        f"files find {found:.2f}, though each conversation has its own and all of them fit.",
        f"A file stays as it was saved. It holds the first prompt, {sum(saved.values()) / len(saved):.0f} tokens on "
        f"average, and nothing of the later turns, whose prompts grow to {max(a.num_input_tokens for a in chat):,}.",
        row.ideal - found > APART and _alike(found, reused_tokens / asked_tokens),
    )


def agent_in_slots(table: Table) -> Surprise:
    row = table.row("agent")
    slot, radix = row.found["slot"], row.found["radix"]
    choosy = _found(table, row.workload, "slot", similarity=0.5)
    return Surprise(
        row.name,
        f"four slots find {slot:.2f}, the tree {radix:.2f}.",
        "A new task begins with the tools that every task begins with, and so takes a slot whose task still runs. "
        f"When half the prompt has to agree, the same four slots find {choosy:.2f}.",
        radix - slot > APART and choosy - slot > APART,
    )


def reranked_passages(table: Table) -> Surprise:
    row, stable = table.row(RERANKED), table.row("retrieval")
    best = max(row.found.values())
    is_same_text = all(
        sorted(one.unit_ids) == sorted(other.unit_ids) for one, other in zip(row.workload, stable.workload, strict=True)
    )
    return Surprise(
        row.name,
        f"no design finds more than {best:.2f}, and even an endless cache no more than {row.ideal:.2f}.",
        "Every prompt has the same passages as in the row above, in another order, and keys and values belong to a "
        f"passage behind what stands before it. Put into one order, the same tokens give {stable.ideal:.2f}.",
        is_same_text and stable.ideal - row.ideal > APART,
    )


def few_shot_in_slots(table: Table) -> Surprise:
    row = table.row("few-shot")
    slot, radix = row.found["slot"], row.found["radix"]
    crowd = make("few-shot", table.seed, applications=8)
    crowded, tree = _found(table, crowd, "slot"), _found(table, crowd, "radix")
    return Surprise(
        row.name,
        f"four slots find as much as the tree ({slot:.2f} and {radix:.2f}).",
        f"There are four applications. With eight, the slots find {crowded:.2f} and the tree {tree:.2f}.",
        _alike(slot, radix) and tree - crowded > APART,
    )


def few_shot_from_files(table: Table) -> Surprise:
    row = table.row("few-shot")
    found, least = row.found["file"], min(found for design, found in row.found.items() if design != "file")
    prefixes = _found(table, with_prefixes_sent_first(row.workload), "file")
    return Surprise(
        row.name,
        f"files find {found:.2f}, where every other design finds {least:.2f} or more.",
        "A file is used whole or not at all, and the first prompt was saved with its own item at the end. When "
        f"somebody saves the examples alone, files find {prefixes:.2f}.",
        _alike(found, 0.0) and least > 0.5 and prefixes > 0.5,
    )


def samples_at_once(table: Table) -> Surprise:
    row = table.row("self-consistency")
    workload = cast(SelfConsistency, row.workload)
    in_memory = [found for design, found in row.found.items() if design != "file"]
    late = replace(table.room, publication_delay_s=1.0).replay(workload, "radix").tally.hit_ratio_tokens
    common = workload.instruction_tokens / (workload.instruction_tokens + workload.problem_tokens)
    return Surprise(
        row.name,
        f"all designs in memory find the same, {min(in_memory):.2f} to {max(in_memory):.2f}.",
        "What counts is not the design but when a prompt can be found, since its samples arrive at once. A second "
        f"after its arrival is too late: the tree then finds {late:.2f}, no more than the instructions, which are "
        f"{common:.2f} of a prompt.",
        _alike(min(in_memory), max(in_memory)) and row.ideal - late > APART and late < common,
    )


def thoughts_in_blocks(table: Table) -> Surprise:
    row = table.row("tree-search")
    blocks, radix = row.found["block-hash"], row.found["radix"]
    small = _found(table, row.workload, "block-hash", block_units=1)
    return Surprise(
        row.name,
        f"blocks find {blocks:.2f}, the tree {radix:.2f}.",
        "Each of the many prompts ends within a block, and what fills no block is computed again. Blocks of one token "
        f"find {small:.2f}.",
        radix - blocks > ALIKE and _alike(small, radix),
    )


def documents_in_a_tree(table: Table) -> Surprise:
    row = table.row("document")
    blocks, radix = row.found["block-hash"], row.found["radix"]
    evicted = {
        design: table.room.replay(row.workload, design).stats.evicted_units for design in ("block-hash", "radix")
    }
    endless = _found(table, row.workload, "radix", capacity_units=ENDLESS)
    return Surprise(
        row.name,
        f"blocks find more than the tree, {blocks:.2f} against {radix:.2f}.",
        "The tree evicts a leaf whole, and a document whose questions are gone is one leaf; blocks go one by one from "
        f"the end. The tree gave up {evicted['radix']:,} tokens and the blocks {evicted['block-hash']:,}; in endless "
        f"room the tree finds {endless:.2f}.",
        blocks - radix > ALIKE and evicted["radix"] > 1.2 * evicted["block-hash"] and _alike(endless, row.ideal),
    )


def documents_in_whole_caches(table: Table) -> Surprise:
    row = table.row("document")
    found, blocks = row.found["whole-cache"], row.found["block-hash"]
    design = cast(WholeCacheLRU, table.room.setup("whole-cache").build())
    running = Replay(design, table.room.publication_delay_s)
    num_held, num_different = [], []
    for access in row.workload:
        running.arrive(access)
        caches = design.caches()
        num_held.append(len(caches))
        num_different.append(len({cache[0] for cache in caches}))
    return Surprise(
        row.name,
        f"whole caches find {found:.2f}, and blocks {blocks:.2f}.",
        "Each question leaves a cache of its own, with a copy of its document. The room holds up to "
        f"{max(num_held)} caches, and on average they are of {mean(num_different):.1f} different documents.",
        blocks - found > APART and mean(num_different) < 0.8 * mean(num_held),
    )


def preamble_before_corpus(table: Table) -> Surprise:
    row = table.row("preamble")
    workload = cast(Preamble, row.workload)
    best = max(row.found.values())
    preamble, corpus = workload.preamble_tokens, workload.corpus_tokens
    repaired = _found(table, swapped(workload, preamble, corpus), "block-hash")
    return Surprise(
        row.name,
        f"the corpus is the same for everybody, and no design finds more than {best:.2f}.",
        f"A preamble of {preamble} tokens makes the {corpus} behind it another prefix for each user. The same prompts "
        f"with the corpus first give {repaired:.2f}, with blocks and in the same room.",
        repaired - best > APART,
    )


EXPLANATIONS: tuple[Callable[[Table], Surprise], ...] = (
    chat_in_slots,
    chat_from_files,
    agent_in_slots,
    reranked_passages,
    few_shot_in_slots,
    few_shot_from_files,
    samples_at_once,
    thoughts_in_blocks,
    documents_in_a_tree,
    documents_in_whole_caches,
    preamble_before_corpus,
)


def _found(table: Table, traffic: Iterable[Access], design: str, **changed: Any) -> float:
    return table.room.replay(traffic, design, **changed).tally.hit_ratio_tokens


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= ALIKE
