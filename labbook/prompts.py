"""The prompts of an experiment: a nonce, a long shared text, a short question at the end.

The nonce stands first, so that nothing but the chat template's head can be shared with an earlier run.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
import string
from typing import Any

Message = dict[str, str]

NONCE_LETTERS = 16
FIRST_LETTERS = string.ascii_lowercase

_SUBJECTS = (
    "the archive",
    "a clerk",
    "the north gate",
    "every ledger",
    "the harbour office",
    "a courier",
    "the second shelf",
    "the night watch",
    "an inspector",
    "the old map",
    "a visitor",
    "the printing room",
)
_VERBS = ("keeps", "records", "repeats", "carries", "compares", "returns", "counts", "opens", "copies", "replaces")
_OBJECTS = (
    "one copy of the register",
    "a list of arrivals",
    "the grey folder",
    "seven sealed letters",
    "the weather of the week",
    "an index of names",
    "two keys and a lamp",
    "the price of paper",
    "a drawing of the bridge",
    "the minutes of the meeting",
)
_PLACES = (
    "before noon",
    "near the stairs",
    "in the left drawer",
    "without a signature",
    "for the next reader",
    "under the same number",
    "after the bell",
    "on a separate page",
)

_QUESTIONS = (
    "What does the archive keep?",
    "Who opens the grey folder?",
    "Which list is counted before noon?",
    "Where are the two keys?",
    "What is copied near the stairs?",
    "Who compares the weather?",
    "What carries the same number?",
    "Which drawing is replaced?",
    "What happens after the bell?",
    "How many letters are sealed?",
)


def synthetic_text(words: int, seed: int) -> str:
    """Exactly `words` words of dull prose, the same for the same seed on every machine."""
    if words < 1:
        raise ValueError(f"words is {words}: a prefix needs at least 1 word")
    generator = random.Random(seed)
    made: list[str] = []
    while len(made) < words:
        parts = [generator.choice(bank) for bank in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)]
        sentence = " ".join(parts).split()
        made += [sentence[0].capitalize(), *sentence[1:-1], sentence[-1] + "."]
    return " ".join(made[:words])


def shuffled(text: str, seed: int) -> str:
    """The same words in another order: a prompt of the same shape that shares no long run of tokens."""
    words = text.split()
    random.Random(f"warm-up {seed}").shuffle(words)
    return " ".join(words)


def fresh_nonces(count: int) -> list[str]:
    """`count` random words that differ from each other in their first letter already; from 27 on, in the first two."""
    letters = FIRST_LETTERS
    starts = list(letters) if count <= len(letters) else [one + two for one in letters for two in letters]
    firsts = secrets.SystemRandom().sample(starts, count)
    rests = ["".join(secrets.choice(letters) for _ in range(NONCE_LETTERS - len(first))) for first in firsts]
    return [first + rest for first, rest in zip(firsts, rests, strict=True)]


def with_another_first_letter(nonce: str) -> str:
    """The smallest change at the very start of a prompt: one letter, and with it its first token."""
    others = [letter for letter in FIRST_LETTERS if letter != nonce[0]]
    return secrets.choice(others) + nonce[1:]


def question(number: int, seed: int = 0) -> str:
    """The question of request `number`; different numbers ask differently."""
    text = _QUESTIONS[(number + seed) % len(_QUESTIONS)]
    round_number = number // len(_QUESTIONS)
    return text if round_number == 0 else f"{text} (part {round_number + 1})"


def conversation(nonce: str, text: str, asked: str) -> list[Message]:
    """A system message that begins with the nonce and holds the shared text, and a user's question."""
    return [
        {"role": "system", "content": f"{nonce}\n\n{text}"},
        {"role": "user", "content": f"{asked} Answer in one short sentence."},
    ]


def without_system(messages: list[Message]) -> list[Message]:
    """The same content in one user message, for templates that refuse a system message."""
    return [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}]


def body_bytes(body: dict[str, Any]) -> bytes:
    """The bytes that are sent: equal bodies give equal bytes."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def first_difference(first: bytes, second: bytes) -> int | None:
    """The position of the first byte in which two bodies differ; None when they are equal."""
    for position, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return position
    return None if len(first) == len(second) else min(len(first), len(second))
