"""The quiz of notebook 10, where a prefix cache matters most."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "why-agents-gain-most",
            "Why does an agent gain more from a prefix cache than almost anything else?",
            (
                Option(
                    "Its answers are short, and short answers can be remembered",
                    False,
                    "No answer is remembered. Each one is generated token by token, with and without the cache.",
                ),
                Option(
                    "Every step sends all earlier steps again and adds a little at the end",
                    True,
                    "Nearly the whole prompt was computed a moment ago, and only the newest result is new.",
                ),
                Option(
                    "Agents use tools, and the tools' results are cached",
                    False,
                    "A tool's result is new text. It is computed once and only helps from the next step on.",
                ),
            ),
        ),
        Question(
            "twice-the-steps",
            "An agent takes twice as many steps. Its first prompt is short. What happens to the tokens computed?",
            (
                Option(
                    "They double, with and without the cache",
                    False,
                    "Only with the cache. Without it the later steps also send longer prompts.",
                ),
                Option(
                    "They nearly double with the cache, and grow nearly four times without it",
                    True,
                    "Twice the steps, each with a prompt about twice as long: a square. With the cache each step adds "
                    "only its own tokens.",
                ),
                Option(
                    "They stay the same with the cache",
                    False,
                    "What a step adds has to be computed once, cache or not.",
                ),
            ),
        ),
        Question(
            "where-the-clock-belongs",
            "The agent has to know the time. Where do you put it?",
            (
                Option(
                    "At the end, with the newest result, and leave it there in later steps",
                    True,
                    "What was sent once stays as it was, and each step goes on where the one before ended.",
                ),
                Option(
                    "In the first line of the system prompt, rounded to minutes",
                    False,
                    "Each new minute throws everything behind it away, and that is the whole history.",
                ),
                Option(
                    "In the middle, as a compromise",
                    False,
                    "Everything behind it is computed again each time. There is no reason to lose even half.",
                ),
            ),
        ),
        Question(
            "corpus-and-users",
            "Ten users ask about one corpus. Which statement is true?",
            (
                Option(
                    "The order of corpus and user name does not matter: both are in every prompt",
                    False,
                    "Reuse ends at the first difference. With the name in front, the corpus behind it is never shared.",
                ),
                Option(
                    "With the corpus first it is shared in any case, salts or not",
                    False,
                    "A salt of its own for each user keeps the pages apart, whatever the order.",
                ),
                Option(
                    "With the corpus first and one salt it is computed once; with a salt for each user ten times",
                    True,
                    "Order makes sharing possible, and salts decide who may. A salt per company lies in between.",
                ),
            ),
        ),
        Question(
            "who-gains-little",
            "Which of these gains least from a prefix cache?",
            (
                Option(
                    "A long chat with one assistant",
                    False,
                    "Each turn goes on where the last one ended, answers included, as long as its pages are kept.",
                ),
                Option(
                    "Labelling a thousand items behind the same worked examples",
                    False,
                    "The examples are restored a thousand times, and only the item is new.",
                ),
                Option(
                    "A thousand different short prompts with long answers",
                    True,
                    "Nothing is shared, and the time goes into decoding, which a prefix cache does not speed up.",
                ),
            ),
        ),
    )
)
