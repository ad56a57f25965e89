"""The quiz of notebook 00, the first measurement."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "what-a-warm-request-skips",
            "A warm request answers sooner than a cold one. Which work does it skip?",
            (
                Option(
                    "Computing keys and values for the tokens at the start that an earlier prompt had too",
                    True,
                    "Those pages are restored. Only the tokens after them are computed.",
                ),
                Option(
                    "Generating the answer, because the server remembers it",
                    False,
                    "Each question was another one, and every answer was generated token by token. "
                    "A prefix cache stores no answers.",
                ),
                Option(
                    "Sending the prompt over the network",
                    False,
                    "The whole prompt was sent every time. The server looks it up after it has arrived.",
                ),
            ),
        ),
        Question(
            "one-word-in-front",
            "You put the current time in front of a long system prompt. What can the next request restore?",
            (
                Option(
                    "Everything but the few tokens of the time",
                    False,
                    "The keys and values of a token depend on all tokens before it. "
                    "After the first difference nothing fits any more.",
                ),
                Option(
                    "At most what stands before the time",
                    True,
                    "Reuse ends at the first token that differs. In front of the time there is only "
                    "the template's head, a few tokens.",
                ),
                Option(
                    "Half of it, on average",
                    False,
                    "There is no average in it. What counts is the place of the first difference, "
                    "and here that is the start.",
                ),
            ),
        ),
        Question(
            "why-three-signals",
            "The warm request was faster. Why is that alone no proof of a prefix cache?",
            (
                Option(
                    "Because a clock is never exact enough",
                    False,
                    "It is exact enough here: the difference is much larger than the spread. "
                    "The trouble is what else can make a difference.",
                ),
                Option(
                    "Because the first request may be slow for other reasons, such as loading or a busy machine",
                    True,
                    "So the instrument sends a warm-up first, repeats the slow case with a changed prefix, "
                    "and asks the counters.",
                ),
                Option(
                    "Because the cached tokens in the answer are always right, and the clock is not needed",
                    False,
                    "Servers have counted wrongly. Counters and clock check each other.",
                ),
            ),
        ),
        Question(
            "whole-pages",
            "Prompts share 183 tokens, and pages hold 16. How many cached tokens do you expect?",
            (
                Option(
                    "183",
                    False,
                    "Only filled pages can be found. The last 7 shared tokens stand in a page "
                    "that also holds tokens of the question.",
                ),
                Option(
                    "176",
                    True,
                    "11 whole pages of 16 tokens are 176. The page with the other 7 tokens is computed again.",
                ),
                Option(
                    "192",
                    False,
                    "That would be 12 pages, and the twelfth holds tokens that differ. It must not be shared.",
                ),
            ),
        ),
    )
)
