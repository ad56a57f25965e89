"""The quiz of notebook 04, the index."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "equal-keys",
            "Two pages have the same key. What does that say, when keys are chained?",
            (
                Option(
                    "They hold the same tokens",
                    False,
                    "They do, and that is not all: the key also holds the key of the page before.",
                ),
                Option(
                    "Both prompts are equal from their first token to the end of that page",
                    True,
                    "That is why one lookup of a key is enough, and why a page may be restored under it.",
                ),
                Option(
                    "Both prompts are equal from there on",
                    False,
                    "A key knows what came before. It cannot know what comes after.",
                ),
            ),
        ),
        Question(
            "more-hits",
            "After a change to its keys an engine restores twice as many tokens, and nothing crashes. What do you do?",
            (
                Option(
                    "Be pleased: more hits are better",
                    False,
                    "You have seen more hits that were all wrong. A hit is worth something only when it is true.",
                ),
                Option(
                    "Read some answers and see whether they sound right",
                    False,
                    "Wrong keys and values give fluent text. Nobody can hear the difference.",
                ),
                Option(
                    "Compare its logits with those of a run without the cache, and run the audit",
                    True,
                    "Restored pages must give the logits that computing gives, and the books must fit the tokens.",
                ),
            ),
        ),
        Question(
            "known-prompt",
            "Pages hold 16 tokens. A prompt of 64 tokens comes a second time. How many are restored?",
            (
                Option(
                    "48",
                    True,
                    "At least one token must be computed, and pages are restored whole: three of the four.",
                ),
                Option(
                    "64", False, "Keys and values alone give no logits for the next token. Something must be computed."
                ),
                Option("63", False, "One token less would do, but the fourth page is restored whole or not at all."),
            ),
        ),
        Question(
            "which-page-first",
            "Pages a, b, c of one prompt are cached, and one must go. Why c?",
            (
                Option(
                    "It is the least recently used",
                    False,
                    "All three were used by the same request. Its place in the prompt decides.",
                ),
                Option(
                    "Without it, a and b are still a beginning that somebody can restore",
                    True,
                    "Without a, b and c could never be reached again: stranded, and still taking room.",
                ),
                Option("It holds the least important tokens", False, "The cache knows nothing of importance."),
            ),
        ),
        Question(
            "design-for-chats",
            "Many people share one long system message and chat for many turns. Which design suits them least?",
            (
                Option(
                    "Blocks found by key",
                    False,
                    "Everybody restores the system message, and each chat its own history, as far as there is room.",
                ),
                Option(
                    "A tree of tokens",
                    False,
                    "The same, and to the token: the system message is one branch, each chat another.",
                ),
                Option(
                    "Four slots",
                    True,
                    "A slot remembers one conversation. With more people than slots they overwrite each other.",
                ),
            ),
        ),
    )
)
