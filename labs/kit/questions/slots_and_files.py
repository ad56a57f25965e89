"""The quiz of notebook 08, slots and their files."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "what-a-slot-file-is",
            "A colleague asks you to mail a slot file, for debugging. What are you about to send?",
            (
                Option(
                    "Numbers that mean nothing without the model's weights",
                    False,
                    "The token ids stand in the file as they are. The tokenizer is public, and turns them into text.",
                ),
                Option(
                    "The whole conversation, readable by whoever has the tokenizer",
                    True,
                    "You decoded one with a few lines. Treat the file as the conversation itself, or encrypt it.",
                ),
                Option(
                    "A digest from which nothing can be read",
                    False,
                    "A digest is kept of the salt alone. Tokens, keys and values are stored as they are.",
                ),
            ),
        ),
        Question(
            "same-name-other-weights",
            "The model was fine-tuned overnight. Name, shapes and tokenizer are the same. May an old slot file be "
            "restored?",
            (
                Option(
                    "Yes: the arrays have the right shape",
                    False,
                    "They fit, and that is the danger: the model would read keys that another one computed, and write "
                    "fluent nonsense.",
                ),
                Option(
                    "Yes, if the checksum of the file is right",
                    False,
                    "The checksum says that the file is whole. It says nothing about who may use it.",
                ),
                Option(
                    "No: keys and values depend on every weight, and the identity in the file names the weights",
                    True,
                    "One changed number was enough for a refusal, with both digests named.",
                ),
            ),
        ),
        Question(
            "half-a-restore",
            "A restore fails in the middle of a file. What should the slot hold afterwards?",
            (
                Option(
                    "What it held before: everything is read and verified before a page is touched",
                    True,
                    "You compared the state before and after each refusal. An engine that writes first loses a good "
                    "conversation to a bad file.",
                ),
                Option(
                    "Nothing, to be safe",
                    False,
                    "That throws away a good conversation for a file that had nothing to do with it.",
                ),
                Option(
                    "The first half of the file",
                    False,
                    "Half a conversation from a file that is known to be damaged would be trusted by the next request.",
                ),
            ),
        ),
        Question(
            "what-checksum-proves",
            "The checksum of a plain slot file fits. What does that prove?",
            (
                Option(
                    "That the file came from your server",
                    False,
                    "Whoever can write into the folder can compute a checksum, too. Only a key makes that impossible.",
                ),
                Option(
                    "That nothing was damaged by accident since it was written",
                    True,
                    "Against a torn disk it is enough. Against a person it is not: encrypted files are authenticated.",
                ),
                Option(
                    "That the tokens belong to the keys and values",
                    False,
                    "It would fit as well around keys of another text. The writer is trusted for that.",
                ),
            ),
        ),
    )
)
