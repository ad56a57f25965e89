"""Traffic of independent requests that begin alike: what differs stands at the end, or, in the last, at the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minivllm.policies.access import Access
from minivllm.policies.traffic.workload import Tokens, Workload, request


@dataclass(frozen=True)
class Retrieval(Workload):
    """Questions that are answered from retrieved passages. A topic has its passages, and popular topics come often.

    Reusable: with stable passages, all of a topic's, for whoever asks about it again. `is_reranked` puts the same
    passages in the order of their relevance to each question, which is another order each time: then only the
    instructions are a common prefix, and the passages that happen to lead in the same order. Not reusable: a passage
    behind another one than last time, though its text is the same.
    """

    name: ClassVar[str] = "retrieval"

    questions: int = 120
    topics: int = 12
    passages: int = 5
    passage_tokens: int = 96
    instruction_tokens: int = 64
    question_tokens: int = 24
    answer_tokens: int = 40
    gap_s: float = 2.0
    is_reranked: bool = False

    def __iter__(self) -> Iterator[Access]:
        instructions = self.text("instructions", self.instruction_tokens)
        chance = self.chance("topics and orders")
        for number, now_s in self.starts(self.questions, self.gap_s):
            topic = chance.popular(self.topics)
            by_relevance = chance.shuffled(range(self.passages))  # drawn in both cases: the topics stay the same
            order = by_relevance if self.is_reranked else range(self.passages)
            passages = [self.text(f"passage {topic} {place}", self.passage_tokens) for place in order]
            prompt = sum(passages, instructions) + self.text(f"question {number}", self.question_tokens)
            yield request(prompt, self.text(f"answer {number}", self.answer_tokens), now_s, f"reader {number}")


@dataclass(frozen=True)
class FewShot(Workload):
    """Small jobs, such as labelling, each behind the same worked examples; a few applications take turns.

    Reusable: the examples of an application, always. Not reusable: the item and its label, which come once.
    """

    name: ClassVar[str] = "few-shot"

    requests: int = 160
    applications: int = 4
    examples: int = 8
    example_tokens: int = 48
    item_tokens: int = 64
    answer_tokens: int = 8
    gap_s: float = 0.5

    def __iter__(self) -> Iterator[Access]:
        chance = self.chance("applications")
        for number, now_s in self.starts(self.requests, self.gap_s):
            application = chance.below(self.applications)
            examples = self.text(f"examples {application}", self.examples * self.example_tokens)
            prompt = examples + self.text(f"item {number}", self.item_tokens)
            yield request(prompt, self.text(f"label {number}", self.answer_tokens), now_s, f"application {application}")


@dataclass(frozen=True)
class Document(Workload):
    """Long documents, each with many questions, asked by readers who read at the same time.

    Reusable: a document, as long as it stays in the cache while others are read. Not reusable: the questions. A cache
    smaller than the documents in turn can keep all of one or the start of each, which is where designs part.
    """

    name: ClassVar[str] = "document"

    documents: int = 6
    questions: int = 120
    document_tokens: int = 1200
    question_tokens: int = 24
    answer_tokens: int = 48
    gap_s: float = 3.0

    def __iter__(self) -> Iterator[Access]:
        chance = self.chance("documents")
        for number, now_s in self.starts(self.questions, self.gap_s):
            document = chance.below(self.documents)
            prompt = self.text(f"document {document}", self.document_tokens)
            prompt += self.text(f"question {number}", self.question_tokens)
            yield request(prompt, self.text(f"answer {number}", self.answer_tokens), now_s, f"reader {document}")


@dataclass(frozen=True)
class Preamble(Workload):
    """A corpus that is the same for everybody, behind a preamble with the user's name: the wrong way round.

    Reusable: preamble and corpus for the next question of the same user. Not reusable: the corpus for anybody else,
    though every prompt holds it, because what stands before it differs. Users come back at any time.
    """

    name: ClassVar[str] = "preamble"

    users: int = 12
    questions: int = 96
    preamble_tokens: int = 24
    corpus_tokens: int = 800
    question_tokens: int = 24
    answer_tokens: int = 40
    gap_s: float = 3.0

    def __iter__(self) -> Iterator[Access]:
        chance = self.chance("users")
        corpus: Tokens = self.text("corpus", self.corpus_tokens)
        for number, now_s in self.starts(self.questions, self.gap_s):
            user = chance.below(self.users)
            prompt = self.text(f"preamble {user}", self.preamble_tokens) + corpus
            prompt += self.text(f"question {number}", self.question_tokens)
            yield request(prompt, self.text(f"answer {number}", self.answer_tokens), now_s, f"user {user}")
