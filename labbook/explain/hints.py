"""What an unknown difference looks like. A hint is no cause: it says what is seen, and never why."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from labbook.explain import stamp_forms as forms
from labbook.explain.corpus import is_cut_history
from labbook.explain.divergence import Divergence, Texts
from labbook.explain.rendered import Token

_COMPARED = 8  # tokens from the start
_QUOTES = dict(zip("“”„‟‘’‚‛–—…", "\"\"\"\"''''--.", strict=True))


def hint(divergence: Divergence) -> str:
    """A clause about the place, or nothing."""
    a, b = divergence.a, divergence.b
    if doubles_first(divergence):
        return "one prompt begins with the same token twice: a doubled beginning-of-sequence token"
    if is_cut_history(divergence):
        return "messages are missing here: a history that was cut"
    if texts := divergence.texts:
        return _of_text(texts)
    if a.body.tools != b.body.tools and a.body.is_chat:
        return "the tools differ"
    if a.body.template_arguments != b.body.template_arguments:
        return "the arguments of the chat template differ"
    return ""


def doubles_first(divergence: Divergence) -> bool:
    """One prompt begins with a token twice that the other has once."""
    a, b = divergence.a, divergence.b
    return a.unit == "token" and (_is_shifted(a.tokens, b.tokens) or _is_shifted(b.tokens, a.tokens))


def _is_shifted(doubled: Sequence[Token], tokens: Sequence[Token]) -> bool:
    return len(doubled) > 2 and doubled[0] == doubled[1] and doubled[1:_COMPARED] == tokens[: _COMPARED - 1]


def _of_text(texts: Texts) -> str:
    for text in (texts.a, texts.b):
        sign = text[texts.offset : texts.offset + 1]
        if sign and unicodedata.category(sign) == "Cf":
            return f"an invisible character, U+{ord(sign):04X}"
    signs = [text[texts.offset : texts.offset + 1] for text in (texts.a, texts.b)]
    if signs[0] != signs[1] and _QUOTES.get(signs[0], signs[0]) == _QUOTES.get(signs[1], signs[1]):
        return "typographic against plain signs"
    if signs[0].lower() == signs[1].lower() and signs[0] != signs[1]:
        return "upper case against lower case"
    if all(_is_in(forms.RANDOM_ID, text, texts.offset) for text in (texts.a, texts.b)):
        return "looks like an identifier or a hash"
    if all(sign.isdigit() for sign in signs):
        return "two numbers"
    return ""


def _is_in(pattern: re.Pattern[str], text: str, offset: int) -> bool:
    return any(found.start() <= offset <= found.end() for found in pattern.finditer(text, max(0, offset - 64)))
