"""A part of the user's that stands before the shared text: name, profile or question first, the document behind."""

from __future__ import annotations

import re

from labbook.explain.divergence import Divergence, Texts

# Less equal text behind the difference is no corpus.
_CORPUS_TOKENS = 32
_LOOK_BACK_CHARS = 120
_WISH_WORDS, _SAME_CHARS = 3, 80

_USER = (
    r"(?:user|customer|client|member|employee|patient|tenant|caller|visitor|guest|student|learner|player|"
    r"passenger|account|Kund(?:e|in)|Nutzer(?:in)?|Benutzer(?:in)?|Mitglied|Mitarbeiter(?:in)?)"
)
_ATTRIBUTE = (
    r"(?:[\s_.-]*(?:id|name|profile|e-?mail|tier|plan|role|preferences|info|information|data|context|details|record|"
    r"location|department|language|question|query))*"
)
_SAID = r"(?:\s*[:=,(–-]\W{0,3}|(?:\W{1,3}(?:is|are|named|called|ist|heißt)){1,2}\W{1,3})"
_ANNOUNCED = re.compile(
    rf"\b{_USER}(?:['’]s)?{_ATTRIBUTE}[\"']?{_SAID}$"
    r"|(?:^|\n)\W{0,4}(?:(?:full|first|last)[ _])?name\s*[:=]\s*$"
    r"|\b(?:my name is|ich heiße|asked by|on behalf of|signed in as|logged in as)\W{1,3}$",
    re.IGNORECASE,
)
# "You are helping" is followed by a name, or by the kind of people that a prompt is written for.
_BEFORE_NAME = re.compile(
    rf"\b(?:talking to|speaking (?:to|with)|chatting with|helping|assisting|answering|I am|I['’]m|ich bin|{_USER})\s+$",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\b(?:question|query|frage)\b\W*(?:is\W*)?$", re.IGNORECASE)
_NAME_OF_USER = re.compile(rf"\b{_USER}\b[^.\n]*(?:\n[^.\n]*)?\bname[\"']?\W{{0,4}}$", re.IGNORECASE)
# For one body alone: a name must follow, since "User:" also opens the turns of an example.
USER_NAMED = re.compile(
    rf"\b(?:(?i:{_USER})(?:['’]s)?[\s_-](?i:name|id|e-?mail|profile)[\"']?\s*(?:(?i:is)\s|[:=]\s?)[\"']?[\w.@+-]+"
    rf"|(?i:{_USER})\s(?:(?:is\s)?(?:named|called)|is)\s[A-ZÄÖÜ]\w+"
    rf"|(?i:talking to|speaking with|chatting with|assisting|helping|signed in as|logged in as|on behalf of)"
    r"\s[A-ZÄÖÜ]\w+)"
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
_QUESTION = re.compile(r"^\W*(?:question|query|user question|frage|q)\b\W*[:?]", re.IGNORECASE)


def stands_before_corpus(divergence: Divergence) -> bool:
    texts = divergence.texts
    if texts is None or divergence.equal_in_fields < _CORPUS_TOKENS or is_cut_history(divergence):
        return False
    if _is_about_user(texts):
        return True
    # A question in the middle of a text that is shared on both sides may just as well be part of that text.
    has_corpus = divergence.equal_in_field >= max(_CORPUS_TOKENS, divergence.position)
    return has_corpus and (_is_question(texts, divergence) or _is_other_wish(texts, divergence))


def is_cut_history(divergence: Divergence) -> bool:
    """Messages that one conversation has here are missing in the other, which goes on with later ones."""
    region = divergence.region
    if region is None or region.message is None:
        return False
    a, b, at = divergence.a.body.messages, divergence.b.body.messages, region.message
    return at < len(a) and at < len(b) and (b[at] in a[at + 1 :] or a[at] in b[at + 1 :])


def _is_about_user(texts: Texts) -> bool:
    begin = _word_start(texts)
    before = texts.a[max(0, begin - _LOOK_BACK_CHARS) : begin]
    is_asked = any(_line(text, texts.offset).rstrip().endswith("?") for text in (texts.a, texts.b))
    if is_asked and not _ASKED.search(before):
        return False  # "User: Where is the gate?" opens a turn of an example
    if _ANNOUNCED.search(before) or _NAME_OF_USER.search(before):
        return True
    if _BEFORE_NAME.search(before) and texts.a[begin : begin + 1].isupper() and texts.b[begin : begin + 1].isupper():
        return True
    return all(_covers(_EMAIL, text, texts.offset) for text in (texts.a, texts.b))


def _is_question(texts: Texts, divergence: Divergence) -> bool:
    """Called a question by a label, or in a user's own message ended by a question mark."""
    lines = [_line(text, texts.offset) for text in (texts.a, texts.b)]
    is_users = _role(divergence) in (None, "user")
    return all(_QUESTION.match(line) or (is_users and line.rstrip(" \"'”*_").endswith("?")) for line in lines)


def _is_other_wish(texts: Texts, divergence: Divergence) -> bool:
    """A user's message begins with a paragraph of its own, and goes on with the same text on both sides."""
    wishes = [text.partition("\n\n") for text in (texts.a, texts.b)]
    (one, _, rest), (other, _, same) = wishes
    is_first = texts.offset < min(len(one), len(other)) and rest[:_SAME_CHARS] == same[:_SAME_CHARS] != ""
    is_sentence = min(len(one.split()), len(other.split())) >= _WISH_WORDS and 2 * texts.offset < min(
        len(one), len(other)
    )
    return is_first and is_sentence and _role(divergence) == "user"


def _role(divergence: Divergence) -> str | None:
    return divergence.b.body.role(divergence.region.message if divergence.region else None)


def _word_start(texts: Texts) -> int:
    begin = texts.offset
    while begin > 0 and (texts.a[begin - 1].isalnum() or texts.a[begin - 1] in "@+-_"):
        begin -= 1
    return begin


def _line(text: str, offset: int) -> str:
    end = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)]


def _covers(pattern: re.Pattern[str], text: str, offset: int) -> bool:
    begin = max(0, offset - _LOOK_BACK_CHARS)
    return any(found.start() <= offset <= found.end() for found in pattern.finditer(text, begin))
