"""The quiz of notebook 09, who may share."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "what-a-salt-does",
            "Two tenants send the same document, each with a salt of its own. What does the salt change?",
            (
                Option(
                    "The text that the model reads, so that the answers differ",
                    False,
                    "The salt goes into the key of a page and nowhere else. The model never sees it.",
                ),
                Option(
                    "The keys under which pages are found, so that each tenant computes the document once",
                    True,
                    "Equal tokens under two salts have two keys. Nobody finds the other's pages, and each pays once.",
                ),
                Option(
                    "The pages are encrypted, so that only their owner can read them",
                    False,
                    "Nothing is encrypted. The pages lie in the same memory; a lookup under another salt does "
                    "not find them.",
                ),
            ),
        ),
        Question(
            "why-the-clock-tells",
            "The answers show no counts at all. Why can a stranger still learn what another tenant sent?",
            (
                Option(
                    "Because a restored prompt is answered sooner, and everybody owns a clock",
                    True,
                    "Whoever can guess the prompt can send it, too, and sees whether it was already there.",
                ),
                Option(
                    "Because the model repeats what it learned from the other tenant",
                    False,
                    "The weights do not change while a model serves. What was shared are keys and values, and "
                    "only through an equal prefix.",
                ),
                Option(
                    "Because the stranger can read the other's page table",
                    False,
                    "No request ever sees a page table. The time to the first token is enough.",
                ),
            ),
        ),
        Question(
            "what-ends-the-side-channel",
            "Which step ends this side channel?",
            (
                Option(
                    "Leave the cached tokens out of the answers",
                    False,
                    "The attack above never saw them. They make it easier, but the clock alone was enough.",
                ),
                Option(
                    "Add a small random delay to every answer",
                    False,
                    "Noise averages out: the attacker repeats with other prompts until the difference shows.",
                ),
                Option(
                    "Give each tenant a salt that the server sets",
                    True,
                    "Then a probe can only find the prober's own pages. Set it on the server: a salt that clients "
                    "choose protects only those who choose a secret one.",
                ),
            ),
        ),
        Question(
            "what-belongs-to-the-identity",
            "A server restarts with one setting changed. After which change must stored pages no longer be used?",
            (
                Option(
                    "A pool of twice the size",
                    False,
                    "The bytes of a page stay the same. With the pool size in the key, restarts would lose good pages.",
                ),
                Option(
                    "Another adapter on the same weights",
                    True,
                    "An adapter changes the keys and values of every token, so its pages must not meet the others.",
                ),
                Option(
                    "Another temperature",
                    False,
                    "It only decides which token is picked from logits. The prompt's keys and values stay the same.",
                ),
            ),
        ),
        Question(
            "just-over-capacity",
            "A pool holds 100 prompts. 110 prompts come in a strict cycle, under LRU. How many are restored?",
            (
                Option(
                    "About 100 of 110: all that fit",
                    False,
                    "They would fit, but LRU keeps the wrong ones: it evicts exactly the prompt that comes next.",
                ),
                Option(
                    "About half of them",
                    False,
                    "A policy such as `scan` does that or better. LRU falls off a cliff.",
                ),
                Option(
                    "None",
                    True,
                    "Each prompt is evicted to make room for another just before its turn. One prompt over capacity "
                    "costs everything.",
                ),
            ),
        ),
    )
)
