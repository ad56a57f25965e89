"""The quiz of notebook 05, why a prompt never hits."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "clock-above-a-cached-document",
            "A document of 3,000 tokens was sent a minute ago. The same document comes again, with the new time "
            "in a line above it. What is restored?",
            (
                Option(
                    "The 3,000 tokens of the document, because the server has them",
                    False,
                    "It has them behind another time. Keys and values depend on everything before them, so these "
                    "are others.",
                ),
                Option(
                    "The whole pages before the first digit that differs",
                    True,
                    "That is the head of the prompt, often less than one page. Behind it everything is computed again.",
                ),
                Option(
                    "All pages but the one that holds the time",
                    False,
                    "A page is found through the pages before it. Behind a changed one, none can be found.",
                ),
            ),
        ),
        Question(
            "where-the-name-goes",
            "Every customer has a name and a question, and all share a long handbook. Which order lets a cache "
            "help most?",
            (
                Option(
                    "name, handbook, question",
                    False,
                    "The name differs, and the handbook stands behind it: nothing of it is shared.",
                ),
                Option(
                    "question, handbook, name",
                    False,
                    "Now the question differs first. It does not matter which of the changing parts comes before the "
                    "handbook.",
                ),
                Option(
                    "handbook, name, question",
                    True,
                    "What is the same for everybody comes first, what changes comes last. The model still reads all of "
                    "it before it answers.",
                ),
            ),
        ),
        Question(
            "saved-and-sent",
            "Two saved prompts are equal up to the question, and yet the second request restores one page. What do "
            "you look at next?",
            (
                Option(
                    "The bodies that the application really sends",
                    True,
                    "Something may be inserted on the way: a time, a request number, a name. `labbook tap` shows it.",
                ),
                Option(
                    "The answers, which must be different ones",
                    False,
                    "Answers are not stored and do not decide what the next prompt can restore.",
                ),
                Option(
                    "The size of the cache, which must be too small",
                    False,
                    "It may be, but then the tail of a prompt goes first. One page that stays means the prompts part "
                    "early.",
                ),
            ),
        ),
        Question(
            "sorted-keys",
            "Why does sorting the keys of a tool schema help, although the model is told the same?",
            (
                Option(
                    "The model understands sorted schemas faster",
                    False,
                    "Nothing was shown about understanding. A cache compares tokens, not meaning.",
                ),
                Option(
                    "Sorted JSON has fewer tokens",
                    False,
                    "It has the same keys and values. Only their order is another.",
                ),
                Option(
                    "Every request then has the same tokens in the same places",
                    True,
                    "Equal meaning is not enough. One order, whichever it is, makes equal bytes and equal tokens.",
                ),
            ),
        ),
        Question(
            "what-a-repair-wins",
            "A repair raises the cached tokens of a prompt from 16 to 176, and 1,000 such requests come each day. How "
            "many tokens need no computing any more?",
            (
                Option(
                    "176,000 a day",
                    False,
                    "16 of them were restored before the repair, too. Only the difference is won.",
                ),
                Option(
                    "About 160,000 a day, as long as the pages stay in the cache",
                    True,
                    "(176 - 16) x 1,000. The very first request computes all of it, and so does one that comes after "
                    "its pages were evicted.",
                ),
                Option(
                    "None, because every prompt is still sent in full",
                    False,
                    "It is sent and looked up in full, but what is found is not computed again.",
                ),
            ),
        ),
    )
)
