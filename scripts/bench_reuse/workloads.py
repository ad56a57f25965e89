"""The workloads: who asks what, and when. Prompts are token ids of synthetic prose, cut so that every length is exact.

A case starts from an empty cache and is a row of acts. The requests of an act arrive together; the next act begins
when the condition of this one is met, which the engine's steps decide and no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from labbook.prompts import question, synthetic_text

Prompt = tuple[int, ...]
Encode = Callable[[str], list[int]]

PARAGRAPHS = 24
CHURN_PROMPTS = 8
CHURN_PARAGRAPHS = 12
CHURN_CAPACITY = 0.7


@dataclass(frozen=True)
class Sizes:
    """Lengths in tokens; a prompt is 24 paragraphs and a question."""

    paragraph: int = 16
    question: int = 16
    overlap_output: int = 16
    long_output: int = 128
    output: int = 16
    churn_output: int = 4

    @property
    def prompt(self) -> int:
        return PARAGRAPHS * self.paragraph + self.question


QUICK = Sizes(paragraph=4, question=4, overlap_output=4, long_output=8, output=8, churn_output=2)


@dataclass(frozen=True)
class Act:
    """Requests that arrive at once. `until` says when the next act begins; it speaks of the first request here."""

    group: str
    prompts: tuple[Prompt, ...]
    max_tokens: int
    until: Literal["idle", "first_token", "decode"] = "idle"


Case = tuple[Act, ...]


@dataclass(frozen=True)
class Workload:
    """`pool_share` is the page pool over the pages that all prompts need; None: everything fits."""

    name: str
    shape: str
    cases: tuple[Case, ...]
    pool_share: float | None = None

    def num_pages(self, page_size: int) -> int:
        """Pages of the pool. With a share, of the distinct prompts; else enough that no case evicts anything."""
        if self.pool_share is not None:
            distinct = {(prompt, act.max_tokens) for case in self.cases for act in case for prompt in act.prompts}
            needed = sum(_pages(len(prompt) + max_tokens - 1, page_size) for prompt, max_tokens in distinct)
            return int(needed * self.pool_share)
        return max(
            sum(_pages(len(prompt) + act.max_tokens, page_size) for act in case for prompt in act.prompts)
            for case in self.cases
        )


def _pages(tokens: int, page_size: int) -> int:
    return -(-tokens // page_size)


@dataclass(frozen=True)
class Prose:
    """Paragraphs and questions by number. Each begins with its number, so that different ones differ at once."""

    encode: Encode
    sizes: Sizes

    def paragraph(self, number: int) -> Prompt:
        return self._cut(f"{number:03}. {synthetic_text(4 * self.sizes.paragraph, number)}", self.sizes.paragraph)

    def document(self, number: int, paragraphs: int = PARAGRAPHS) -> Prompt:
        """A document of its own: no two share a paragraph."""
        return self.mixed(number, 0, paragraphs)

    def mixed(self, number: int, shared: int, paragraphs: int = PARAGRAPHS) -> Prompt:
        """`shared` paragraphs of document 0, then document `number`'s own."""
        numbers = [place if place < shared else number * PARAGRAPHS + place for place in range(paragraphs)]
        return tuple(token for number in numbers for token in self.paragraph(number))

    def question(self, number: int) -> Prompt:
        return self._cut(f"{number:03}? " + f"{question(number)} " * self.sizes.question, self.sizes.question)

    def asking(self, number: int, document: Prompt) -> Prompt:
        return document + self.question(number)

    def _cut(self, text: str, length: int) -> Prompt:
        tokens = tuple(self.encode(text)[:length])
        if len(tokens) < length:
            raise ValueError(f"{text!r} gives {len(tokens)} tokens where {length} are needed")
        return tokens


def all_workloads(encode: Encode, sizes: Sizes) -> list[Workload]:
    prose = Prose(encode, sizes)
    makers = (_overlap, _fan_out, _burst, _document_burst, _followers, _late, _distinct, _churn)
    return [make(prose) for make in makers]


NAMES = (
    "overlap",
    "warm-fan-out",
    "burst",
    "document-burst",
    "followers",
    "late-arrival",
    "distinct",
    "churn",
)


def _overlap(prose: Prose) -> Workload:
    output = prose.sizes.overlap_output
    seed = Act("seed", (prose.asking(0, prose.document(0)),), output)
    probes = []
    for number, percent in enumerate((0, 25, 50, 75, 100), start=1):
        document = prose.mixed(number, PARAGRAPHS * percent // 100)
        probes.append(Act(f"{percent}% shared", (prose.asking(number, document),), output))
    shape = (
        f"One seed document of {PARAGRAPHS} paragraphs of {prose.sizes.paragraph} tokens, then one probe after the "
        f"other that shares 0, 25, 50, 75 and 100% of them, each with its own question; {output} output tokens."
    )
    return Workload("overlap", shape, ((seed, *probes),))


def _fan_out(prose: Prose) -> Workload:
    output, document = prose.sizes.long_output, prose.document(0)
    acts, asked = [Act("seed", (prose.asking(0, document),), prose.sizes.output)], 1
    for count in (1, 2, 4, 8):
        acts.append(
            Act(
                f"{count} probe{'s' * (count > 1)}",
                tuple(prose.asking(asked + n, document) for n in range(count)),
                output,
            )
        )
        asked += count
    shape = (
        "One seed, then 1, 2, 4 and 8 requests at once over its document, every question new; "
        f"{prose.sizes.output} output tokens for the seed and {output} for each probe."
    )
    return Workload("warm-fan-out", shape, (tuple(acts),))


def _burst(prose: Prose) -> Workload:
    output, prompt = prose.sizes.long_output, prose.asking(0, prose.document(0))
    cases = tuple(
        (
            Act(f"cold, {count} at once", (prompt,) * count, output),
            Act(f"warm, {count} at once", (prompt,) * count, output),
        )
        for count in (2, 4, 8)
    )
    shape = (
        f"2, 4 and 8 identical requests of {len(prompt)} tokens at once, then the same again; {output} output tokens."
    )
    return Workload("burst", shape, cases)


def _document_burst(prose: Prose) -> Workload:
    document = prose.document(0)
    act = Act("8 at once", tuple(prose.asking(number, document) for number in range(8)), prose.sizes.output)
    shape = (
        f"8 requests at once over one cold document of {len(document)} tokens, each with a question of "
        f"{prose.sizes.question}; {act.max_tokens} output tokens."
    )
    return Workload("document-burst", shape, ((act,),))


def _followers(prose: Prose) -> Workload:
    output, prompt = prose.sizes.output, prose.asking(0, prose.document(0))
    cases = tuple(
        (
            Act(f"leader of {count}", (prompt,), output, until="first_token"),
            Act(f"{count} followers", (prompt,) * count, output),
        )
        for count in (2, 4, 8)
    )
    shape = f"One leader; 2, 4 and 8 identical requests more when its first token appears; {output} output tokens."
    return Workload("followers", shape, cases)


def _late(prose: Prose) -> Workload:
    output, prompt = 2 * prose.sizes.output, prose.asking(0, prose.document(0))
    case = (Act("first", (prompt,), output, until="decode"), Act("second", (prompt,), output))
    shape = (
        "A second identical request just after the first has entered decode, which is after the forward pass that "
        f"follows its first token; {output} output tokens."
    )
    return Workload("late-arrival", shape, (case,))


def _distinct(prose: Prose) -> Workload:
    prompts = tuple(prose.asking(number, prose.document(number)) for number in range(8))
    shape = f"8 prompts at once that share nothing: coordination must cost nothing; {prose.sizes.output} output tokens."
    return Workload("distinct", shape, ((Act("8 at once", prompts, prose.sizes.output),),))


def _churn(prose: Prose) -> Workload:
    prompts = [prose.asking(n, prose.document(n, CHURN_PARAGRAPHS)) for n in range(CHURN_PROMPTS)]
    acts = tuple(Act(f"cycle {cycle}", (prompt,), prose.sizes.churn_output) for cycle in (1, 2) for prompt in prompts)
    shape = (
        f"{CHURN_PROMPTS} prompts of {len(prompts[0])} tokens, one after the other, cycled twice over a page pool "
        f"{CHURN_CAPACITY} times their size; {prose.sizes.churn_output} output tokens."
    )
    return Workload("churn", shape, (acts,), pool_share=CHURN_CAPACITY)
