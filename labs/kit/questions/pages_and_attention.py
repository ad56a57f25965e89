"""The quiz of notebook 03, pages and attention."""

from __future__ import annotations

from labs.kit.quiz import Option, Question, Quiz

QUIZ = Quiz(
    (
        Question(
            "pages-of-forty-tokens",
            "Pages hold 16 tokens. A sequence has 40. How many pages does it hold, and how many places are empty?",
            (
                Option("2 pages, none empty", False, "Two pages are 32 places. The last 8 tokens need a page, too."),
                Option(
                    "3 pages, 8 places empty", True, "3 x 16 = 48 places for 40 tokens. Only the last page has any."
                ),
                Option(
                    "As many as the longest allowed sequence needs",
                    False,
                    "That is the contiguous buffer. Pages are taken one at a time, when a token needs one.",
                ),
            ),
        ),
        Question(
            "one-owner-ends",
            "Two requests hold the same page. One of them ends. What becomes of the page?",
            (
                Option(
                    "It is free, and its content goes",
                    False,
                    "Then the other request would read whatever comes next into that page. "
                    "The reference count is there to prevent it.",
                ),
                Option(
                    "It is copied for the other request first",
                    False,
                    "Nothing needs copying: a full page never changes, so one copy serves everybody.",
                ),
                Option(
                    "It stays active, with one reference less",
                    True,
                    "Only at zero references may a page be given up. If it can be found, it is then cached.",
                ),
            ),
        ),
        Question(
            "why-full-pages",
            "Why is only a full page shared?",
            (
                Option(
                    "Because its owner still writes into a page that is not full",
                    True,
                    "The next token goes into its next empty place, and for two sequences that is not the same token. "
                    "A full page never changes any more.",
                ),
                Option(
                    "Because a kernel can read full pages only",
                    False,
                    "It reads as many places as the sequence has tokens. Each sequence ends in a page of any filling.",
                ),
                Option(
                    "Because NaN stands behind the last token",
                    False,
                    "That is our way to notice mistakes. Without it sharing would be just as wrong.",
                ),
            ),
        ),
        Question(
            "where-is-position",
            "A page lies at another place in memory than the page before it in the table. Does attention notice?",
            (
                Option(
                    "Yes: tokens must lie in memory in their order",
                    False,
                    "The page table says where each page is, and the sum over tokens does not care about order.",
                ),
                Option(
                    "No: a key carries its position inside, and rows are found through the page table",
                    True,
                    "That is why any free page will do. But a stored page fits one position of a sequence only.",
                ),
                Option(
                    "No: positions play no part in attention",
                    False,
                    "They do. Each key was rotated by its position before it was stored.",
                ),
            ),
        ),
        Question(
            "weight-zero",
            "A kernel reads whole pages and gives weight 0 to the places behind the last token. What may go wrong?",
            (
                Option(
                    "Nothing: 0 times anything is 0",
                    False,
                    "Not for NaN and infinity. What an older request left there may be either.",
                ),
                Option(
                    "It becomes slower, no more", False, "It does read more than it needs. But that is the lesser evil."
                ),
                Option(
                    "0 times NaN is NaN, and the whole answer is lost",
                    True,
                    "You have seen it: every head was NaN. What a token may not see must not enter its sum.",
                ),
            ),
        ),
    )
)
