"""The quiz of notebook 11, your own server and your own predictions."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "absent-cached-tokens",
            "Your vLLM server answers without prompt_tokens_details. What does that say about its cache?",
            (
                Option(
                    "It is off",
                    False,
                    "An absent number is not 0. The server was not asked to tell: --enable-prompt-tokens-details.",
                ),
                Option(
                    "Nothing: this signal is missing, and the other two have to tell",
                    True,
                    "The record keeps it as null with a reason. Counters and clock are still there.",
                ),
                Option(
                    "It is on, because off would be reported as 0",
                    False,
                    "Without the option the field is missing in both cases.",
                ),
            ),
        ),
        Question(
            "hits-without-cached-tokens",
            "Warm requests are slow, cached_tokens is 0, and the hit counter grows. What is the best next step?",
            (
                Option(
                    "Believe the counter, because it counts tokens and not seconds",
                    False,
                    "Two signals speak against it, and the clock is one of them. Something counts wrongly.",
                ),
                Option(
                    "Take the mean of the three signals",
                    False,
                    "They measure different things. A mean of them would measure nothing.",
                ),
                Option(
                    "Ask what the counter counts, and measure again with the cache off",
                    True,
                    "If it grows with the cache off, too, it does not count hits of this cache.",
                ),
            ),
        ),
        Question(
            "blocks-of-128",
            "Prompts share 180 tokens. One server has blocks of 16 tokens, the other of 128. How many are reused?",
            (
                Option(
                    "176 and 128",
                    True,
                    "Eleven whole blocks of 16, one whole block of 128. A block that differs is computed.",
                ),
                Option(
                    "180 and 180",
                    False,
                    "Only servers that match token by token could do that. These find whole blocks.",
                ),
                Option(
                    "176 and 0, because 180 is no multiple of 128",
                    False,
                    "The prefix need not be a multiple. The first block of 128 is whole, and it is found.",
                ),
            ),
        ),
        Question(
            "someone-elses-record",
            "A page on the net shows warm over cold 0.1 for your engine, on another GPU. May you expect 0.1?",
            (
                Option(
                    "Yes, if it is the same version",
                    False,
                    "Machine, model, lengths and load differ as well. Each of them moves the ratio.",
                ),
                Option(
                    "No. It shows that reuse can work there; the size has to be measured here",
                    True,
                    "A record is evidence about its own conditions. That is why it carries them.",
                ),
                Option(
                    "Yes, ratios do not depend on the machine",
                    False,
                    "They do: fixed costs are another share of the time on every machine.",
                ),
            ),
        ),
    )
)
