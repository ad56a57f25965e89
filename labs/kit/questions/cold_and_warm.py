"""The quiz of notebook 02, evidence for a cache."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "second-run-of-a-script",
            "You run your own timing script a second time. Now its first request is as fast as the others. "
            "What is the likeliest reason?",
            (
                Option(
                    "The cache was turned off in between",
                    False,
                    "Then all requests would be slow. Here all of them are fast, the first one included.",
                ),
                Option(
                    "The first request sent the same text as yesterday's, so it was warm",
                    True,
                    "A cold request has to begin with something that no request began with before. "
                    "The instrument puts a fresh nonce there.",
                ),
                Option(
                    "The server has warmed up and computes faster now",
                    False,
                    "Warming up saves some time once. It does not make prefill as short as a restored prefix.",
                ),
            ),
        ),
        Question(
            "what-a-control-is-for",
            "The warm requests were fast and the cold one slow. What does the control with a changed first word add?",
            (
                Option(
                    "A second cold time, for a better average",
                    False,
                    "A repeated cold request would give that, too. The control answers another question.",
                ),
                Option(
                    "Proof that the server can be slow at the end as well",
                    True,
                    "It comes last and is slow all the same. So neither the order nor a server that "
                    "gets faster explains the fast ones.",
                ),
                Option(
                    "A check that the text was not changed by accident",
                    False,
                    "It changes the text on purpose. Everything behind the change has to be computed again.",
                ),
            ),
        ),
        Question(
            "clock-against-counters",
            "The counters say that nearly all tokens were hits. The clock shows warm requests as slow as cold ones, "
            "and cached_tokens says 0. What do you write down?",
            (
                Option(
                    "Reused: counters are exact, and clocks are noisy",
                    False,
                    "Exact is not the same as true. A counter may count something else, or count wrongly.",
                ),
                Option(
                    "Reused, but the machine was busy",
                    False,
                    "That would have to be shown. And it would not explain why the answers report 0 cached tokens.",
                ),
                Option(
                    "Not reused by the clock and one more signal, and that the counters disagree",
                    True,
                    "Two against one, the clock among them. The record keeps the third, which is a finding, too.",
                ),
            ),
        ),
        Question(
            "long-answers",
            "Your application writes answers of 500 tokens over prompts of 500. You turn on prefix caching. "
            "What gets faster?",
            (
                Option(
                    "The first token comes sooner; the other 499 take as long as before",
                    True,
                    "Restored pages save prefill. Every new token still needs a pass of its own through the model.",
                ),
                Option(
                    "Everything, by the share of the prompt that is cached",
                    False,
                    "That share is a share of the prefill only. Decoding is untouched.",
                ),
                Option(
                    "Nothing, because the answer is as long as the prompt",
                    False,
                    "The prefill is still saved. It is only a smaller part of the whole time.",
                ),
            ),
        ),
        Question(
            "when-to-say-inconclusive",
            "With the clock alone and a prompt of 30 tokens, warm over cold is 0.9, between 0.5 and 1.3. "
            "Which report is honest?",
            (
                Option(
                    "No reuse, because 0.9 is close to 1",
                    False,
                    "The interval also holds 0.5, which would be reuse. No difference seen is not no difference.",
                ),
                Option(
                    "Reuse of 10 %",
                    False,
                    "The interval holds 1.3 as well, which would mean slower. A middle value alone is no finding.",
                ),
                Option(
                    "Inconclusive: measure again with a longer prompt or more repeats",
                    True,
                    "The interval includes no effect and a large one. A longer prompt lifts it above the noise.",
                ),
            ),
        ),
    )
)
