"""The quiz of notebook 07, what a quantized cache costs."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "what-8-bits-trade",
            "You turn on an 8-bit cache. What do you trade?",
            (
                Option(
                    "Speed for memory: answers stay exactly the same, they only come later",
                    False,
                    "Every stored key and value is rounded, so the distribution of the next token changes a little. "
                    "Whether it is slower depends on the device.",
                ),
                Option(
                    "A small change of what the model says for about half the memory of 16 bits",
                    True,
                    "You measured both sides: bytes a token on one, divergence and perplexity on the other. "
                    "The speed is a third question, and each device answers it anew.",
                ),
                Option(
                    "Nothing: 8 bits are enough for keys and values, that is well known",
                    False,
                    "On this model and this text the change was small. It was not zero, and another model or a longer "
                    "context has to be measured again.",
                ),
            ),
        ),
        Question(
            "why-not-exactly-half",
            "Why does a token of an 8-bit cache take more than half of what it takes at 16 bits?",
            (
                Option(
                    "Because pages are rounded up to whole megabytes",
                    False,
                    "A page is as large as its arrays, to the byte. You divided the arrays by their rows.",
                ),
                Option(
                    "Because the first tokens stay at 16 bits",
                    False,
                    "Only with quantized_kv_start, which is 0 unless you set it.",
                ),
                Option(
                    "Because every group of numbers also stores a scale and a bias",
                    True,
                    "64 numbers of one byte come with 4 bytes of scale and bias: 68 bytes, which is 53 % of 128.",
                ),
            ),
        ),
        Question(
            "twice-as-many",
            "The KV cache of a conversation takes half the bytes. How many conversations fit a card now?",
            (
                Option(
                    "Twice as many, or one more, or many times as many: do the division",
                    True,
                    "Weights take their share first, and only whole conversations count. In the notebook one became "
                    "three.",
                ),
                Option(
                    "Exactly twice as many",
                    False,
                    "That would need a cache that fills its room to the last byte. Left-over room counts, too.",
                ),
                Option(
                    "Half as many again, because weights shrink less than the cache",
                    False,
                    "The option changes the cache alone. The weights stay as they are.",
                ),
            ),
        ),
        Question(
            "speed-without-quality",
            "A blog post says: 4-bit cache, 1.4 times the tokens per second. What do you ask first?",
            (
                Option(
                    "Which driver was installed",
                    False,
                    "It may matter. But with the best driver you still do not know whether the tokens were any good.",
                ),
                Option(
                    "What it did to the answers: divergence, perplexity or found facts on the same run",
                    True,
                    "Some benchmarks looked fine while the text was gibberish. A speed without a quality is half a "
                    "measurement.",
                ),
                Option(
                    "Nothing: fewer bytes are read, so it must be faster",
                    False,
                    "Somebody has to turn the bytes back into numbers. On a CPU that costs more than it saves.",
                ),
            ),
        ),
        Question(
            "one-nan",
            "One value of a group is NaN, and the group is quantized by mx.quantize alone. What is read back?",
            (
                Option(
                    "NaN in the whole group, so that everybody notices",
                    False,
                    "That is what the engine makes of it, by giving such a group a NaN scale. mx.quantize does not.",
                ),
                Option(
                    "NaN in the one place",
                    False,
                    "A whole number of 8 bits has no NaN. The mark is lost in the rounding.",
                ),
                Option(
                    "Finite numbers that look plausible",
                    True,
                    "The extremes of a group are found by comparison, and every comparison with NaN is false. "
                    "The fault becomes invisible.",
                ),
            ),
        ),
    )
)
