"""The quiz of notebook 06, publish and wait."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "why-twins-both-miss",
            "Two identical requests arrive at the same moment. Pages are published after every step. "
            "Why can the second one still restore nothing?",
            (
                Option(
                    "Both are looked up before either has computed a page",
                    True,
                    "A lookup finds what is published at that moment. In their first step nothing is.",
                ),
                Option(
                    "A prefix cache never shares pages between requests that run at the same time",
                    False,
                    "It does: a published page may stand in many page tables at once. Here it is not there yet.",
                ),
                Option(
                    "The two requests have different sampling settings",
                    False,
                    "Settings decide the answer, not the keys and values of the prompt. They are not part of a key.",
                ),
                Option(
                    "The engine has too few pages for both",
                    False,
                    "It had room for both. That is why it computed everything twice.",
                ),
            ),
        ),
        Question(
            "publish-on-schedule-owes",
            "`on_schedule` publishes a page before it is computed. What does it owe the others for that?",
            (
                Option(
                    "Nothing: a page that is scheduled is as good as computed",
                    False,
                    "A step can fail. Then the page holds no keys and values, and who attached it would read garbage.",
                ),
                Option(
                    "It has to copy the page for every request that attached it",
                    False,
                    "Sharing is fine while the content is true. The trouble is a content that never came.",
                ),
                Option(
                    "If the step fails, it takes the page back, and everybody who attached it computes again",
                    True,
                    "Published means promised. A promise that is broken has to be withdrawn from everybody who built "
                    "on it.",
                ),
            ),
        ),
        Question(
            "never-published",
            "An answer ends after 8 sampled tokens. Which of its tokens may no policy publish, ever?",
            (
                Option(
                    "The first sampled token",
                    False,
                    "It was fed back to the model to get the second, so its keys and values are there.",
                ),
                Option(
                    "The last sampled token",
                    True,
                    "Nobody fed it to the model. It has no keys and values, so a page with it is not full.",
                ),
                Option(
                    "All sampled tokens, because sampling is random",
                    False,
                    "How a token was chosen does not matter. Its keys and values follow from the tokens before it.",
                ),
            ),
        ),
        Question(
            "early-or-late-release",
            "Followers may go when their leader's prompt is computed, or when its answer is complete. What is true?",
            (
                Option(
                    "Early release is better in every way",
                    False,
                    "First tokens come sooner. But now all of them decode in the same steps, and each step takes "
                    "longer: the leader pays.",
                ),
                Option(
                    "Early release computes more prompt tokens",
                    False,
                    "The counts are equal: the prompt is computed once, and a short tail for each follower.",
                ),
                Option(
                    "Early release brings first tokens sooner, and may make the leader's answer end later",
                    True,
                    "Waiting moves from the followers into the steps that they share with the leader.",
                ),
                Option(
                    "Late release lets the followers take over the leader's answer",
                    False,
                    "Only keys and values of the prompt are shared. Every request samples its own answer.",
                ),
            ),
        ),
        Question(
            "eight-questions",
            "Eight people ask different questions about one long document that is not cached yet. "
            "What does a flight whose key is the whole prompt do for them?",
            (
                Option(
                    "Nothing: their prompts differ, so they share no flight",
                    True,
                    "An exact-input flight knows equal prompts only. Page by page, what they share is computed once.",
                ),
                Option(
                    "It computes the document once",
                    False,
                    "It would, if the key were the document. The key is all tokens, and the last ones differ.",
                ),
                Option(
                    "It answers all eight with the leader's answer",
                    False,
                    "Answers are never shared, not even between equal prompts.",
                ),
            ),
        ),
        Question(
            "review-the-patch",
            "You review the patch above: the end of an unknown request is no error any more. What do you say?",
            (
                Option(
                    "Merge it: ending twice is harmless, and a crash is worse than a shrug",
                    False,
                    "Ending twice is the harmless case. An end under a wrong name looks the same, and there somebody "
                    "waits for ever.",
                ),
                Option(
                    "Merge it, with a warning in the log",
                    False,
                    "The follower still waits, only with a line in a log. And nobody knows which request to wake.",
                ),
                Option(
                    "Refuse it: an unknown end is the only sign that somebody ended the wrong request, or one twice",
                    True,
                    "The error stands where the mistake can still be found. Find who ends a request twice; mend that.",
                ),
                Option(
                    "Refuse it: returning is slower than raising",
                    False,
                    "Speed has nothing to do with it. What is lost is the sign that the books are wrong.",
                ),
            ),
        ),
    )
)
