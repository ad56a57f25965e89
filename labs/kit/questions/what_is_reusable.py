"""The quiz of notebook 01, what can be reused."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "true-about-reuse",
            "Which of these statements about a prefix cache is true?",
            (
                Option(
                    "A text that was sent before is restored, wherever it stands in the new prompt",
                    False,
                    "The document in the middle was sent before, letter by letter, and nothing of it was restored.",
                ),
                Option(
                    "Pages are restored from the first token on, up to the first page that differs",
                    True,
                    "That is all a prefix cache does. It asks for equal tokens from the very start, page by page.",
                ),
                Option(
                    "Two prompts that mean the same share their keys and values",
                    False,
                    "It compares token ids. One blank more, and the ids are others from there on.",
                ),
            ),
        ),
        Question(
            "why-rows-differ",
            "The same word stands at the same place in two prompts. Only the first token differs. Where are the keys "
            "and values of this word equal?",
            (
                Option(
                    "In layer 0 only",
                    True,
                    "Layer 0 sees the token and its position. From layer 1 on each row is made of what attention has "
                    "gathered from the tokens before.",
                ),
                Option(
                    "In all layers, because it is the same word at the same place",
                    False,
                    "The first layer has mixed in the other first token, and all layers behind it work with that.",
                ),
                Option(
                    "In none, because the prompts are different",
                    False,
                    "In layer 0 nothing has been mixed yet, so there they are equal.",
                ),
            ),
        ),
        Question(
            "tokens-behind-the-change",
            "One token in the middle of a prompt changes. Why may the pages before it be restored?",
            (
                Option(
                    "Because they are older",
                    False,
                    "Age decides about eviction, not about what is right.",
                ),
                Option(
                    "Because the difference is too small to matter",
                    False,
                    "The rows before it are equal, not nearly equal. The rows behind it differ a lot.",
                ),
                Option(
                    "Because attention looks back only, so nothing before the change knows of it",
                    True,
                    "A token sees those before it and itself. That is why a prefix, and only a prefix, stays right.",
                ),
            ),
        ),
        Question(
            "same-letters",
            "A program glues a long prompt together from two pieces, and tokenizes each by itself. Later the whole "
            "text is tokenized at once. What can happen?",
            (
                Option(
                    "Nothing: the letters are the same, so the tokens are",
                    False,
                    "A word that was cut at the seam is two tokens in one case and perhaps one in the other.",
                ),
                Option(
                    "At the seam the tokens differ, and from that page on nothing is restored",
                    True,
                    "The same letters, other ids. To the cache this is another prompt from there on.",
                ),
                Option(
                    "The server notices that the texts are equal and restores all pages",
                    False,
                    "It never sees the texts as one. It compares ids.",
                ),
            ),
        ),
        Question(
            "logits-differ-a-little",
            "Cold and warm logits of the same token differ by some millionths of their size. What does that say?",
            (
                Option(
                    "The same sums were computed in another order, and rounding differs",
                    True,
                    "A product of 4 rows and one of hundreds are summed in blocks of other sizes. Each is as right as "
                    "the other.",
                ),
                Option(
                    "The cache has stored something wrong",
                    False,
                    "Wrong rows make a large difference, as those behind another first token did.",
                ),
                Option(
                    "Warm answers are always a little worse",
                    False,
                    "Neither is nearer to the exact value. A token changes only where two candidates were tied to "
                    "within that difference.",
                ),
            ),
        ),
    )
)
