"""What each cause is called for people, and what to do about it in one sentence."""

from __future__ import annotations

NONE, UNKNOWN = "none", "unknown"

CAUSES: dict[str, tuple[str, str]] = {
    "clock": (
        "a clock",
        "Move the time behind everything that stays the same, into the last user message, or leave it out.",
    ),
    "date": (
        "a date",
        "Move the date behind everything that stays the same: it ends the shared prefix for everybody once a day.",
    ),
    "uuid": (
        "a UUID",
        "Keep the identifier out of the prompt (a header or the field `user` can carry it), or move it to the end.",
    ),
    "counter": (
        "a counter",
        "Keep the number out of the prompt, or move it behind everything that stays the same.",
    ),
    "key_order": (
        "the order of keys in JSON",
        "Serialize schemas once and reuse the bytes, or sort the keys (json.dumps(..., sort_keys=True)).",
    ),
    "list_order": (
        "the order of a list",
        "Give the list one order, for instance sorted by name: a set or a query without ORDER BY comes in any order.",
    ),
    "whitespace": (
        "blanks",
        "Build the text in one place and trim it: one blank or empty line more makes other tokens.",
    ),
    "line_endings": (
        "line endings (CRLF against LF)",
        "Turn every text to \\n before it is sent, for instance by reading files in text mode.",
    ),
    "unicode_form": (
        "the Unicode form (the same letters, encoded in another way)",
        "Bring every text to one form before it is sent: unicodedata.normalize('NFC', text).",
    ),
    "user_before_corpus": (
        "a part of the user's before the shared text",
        "Put the shared text first, and the user's name, profile and question behind it.",
    ),
    "reranked_passages": (
        "the same passages in another order",
        "Sort the passages by a stable key (document id) after retrieval, and number them after that.",
    ),
    "template_history": (
        "a chat template that renders history otherwise than the newest turn",
        "Use a template (or template argument) that renders a past turn as it was generated, one that keeps its "
        "reasoning or empty think block, for instance.",
    ),
    "retokenized_seam": (
        "a seam: the same text, cut into other tokens",
        "Send the token ids that were generated instead of their text, or end a turn at a token that never merges.",
    ),
    UNKNOWN: (
        "a cause that is not known",
        "Compare the two texts at this place: what changes from request to request belongs behind what stays the same.",
    ),
    NONE: ("nothing that should not", "Nothing to do."),
}


def name(cause: str) -> str:
    return CAUSES[cause][0]


def fix(cause: str) -> str:
    return CAUSES[cause][1]
