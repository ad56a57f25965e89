"""The same pieces in another order: keys of a schema, items of a list, retrieved passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from labbook.explain.body import Body
from labbook.explain.divergence import Texts
from labbook.explain.json_place import first_difference, value_at

Found = tuple[str, str, str | None]  # cause, confidence, and a path when the place of the token is no good name

_MAX_OPENINGS = 200
_PASSAGE_WORDS = 8
_LABEL = re.compile(
    r"^\s*(?:[-*•–+]\s+|\(?\[?\d{1,3}[\]).:]+\s*|(?:#+\s*)?(?:passage|document|doc|source|context|chunk|snippet|excerpt|"
    r"result|quelle|dokument|abschnitt|kontext)\s*(?:#|no\.?|nr\.?)?\s*\[?\d{1,3}\]?[:.)]?\s*)+",
    re.IGNORECASE,
)
_SCORE = re.compile(
    r"[(\[]?\b(?:score|relevance|similarity|rank|distance)\s*[=:]?\s*\d+(?:\.\d+)?[)\]]?", re.IGNORECASE
)
_INDEX = re.compile(r"\b(index|id|rank|n|no)=([\"']?)\d+\2", re.IGNORECASE)
_RETRIEVED = re.compile(
    r"passage|document|<doc|\bdoc\b|source|context|chunk|snippet|excerpt|retriev|search result|knowledge|score|article|"
    r"quelle|dokument|kontext|abschnitt|textstelle|^\s*\[\d+\]",
    re.IGNORECASE | re.MULTILINE,
)


def of_tools(a: Body, b: Body) -> Found | None:
    """Tools that are equal but for an order: of the keys in a schema, of the tools, of a list in a schema."""
    found = first_difference(a.tools, b.tools)
    if found is None or found.kind not in ("key_order", "list_order"):
        return None
    return found.kind, "certain", f"tools{found.path}"


def of_documents(a: Body, b: Body) -> Found | None:
    """The passages that some servers take beside the messages."""
    found = first_difference(*(body.template_arguments.get("documents") for body in (a, b)))
    return (
        ("reranked_passages", "certain", "documents")
        if found and (found.kind, found.path) == ("list_order", "")
        else None
    )


def of_messages(a: Body, b: Body) -> Found | None:
    """The same messages in another order."""
    found = first_difference(a.messages, b.messages)
    if found is None or found.kind != "list_order" or found.path:
        return None
    moved = "\n\n".join(a.text_of(index) for index in range(len(a.messages)) if a.messages[index] != b.messages[index])
    return ("reranked_passages" if _RETRIEVED.search(moved) else "list_order"), "likely", "messages"


def of_json(texts: Texts) -> Found | None:
    """JSON that is written out inside a text."""
    openings = [at for at in range(min(texts.offset + 1, len(texts.a))) if texts.a[at] in "{["][:_MAX_OPENINGS]
    for at in openings:
        one, other = value_at(texts.a, at), value_at(texts.b, at)
        if one is None or other is None or one[1] <= texts.offset:
            continue
        found = first_difference(one[0], other[0])
        if found and found.kind in ("key_order", "list_order"):
            return found.kind, "certain", None
    return None


def of_blocks(texts: Texts, heading: str = "") -> Found | None:
    """Paragraphs, lines, or the items of a line. `heading` is text before that may say what the blocks are."""
    for split in (_paragraphs, _lines):
        a, b = split(texts.a), split(texts.b)
        kind = _reordered(a, b)
        if kind is None:
            continue
        if _are_passages(a, texts, heading):
            return "reranked_passages", "certain" if kind == "all" else "likely", None
        if kind == "all":
            return "list_order", "likely", None
    return _of_items(texts)


def of_parts(a: Body, b: Body, message: int) -> Found | None:
    """The content parts of one message: each passage a part of its own."""
    texts = [_part_texts(body, message) for body in (a, b)]
    kind = _reordered(*texts)
    if kind is None:
        return None
    whole = "\n".join(texts[0])
    is_passages = bool(_RETRIEVED.search(whole)) or _words(texts[0]) >= _PASSAGE_WORDS
    if not is_passages and kind != "all":
        return None
    cause = "reranked_passages" if is_passages else "list_order"
    return cause, "certain" if kind == "all" else "likely", f"messages[{message}].content"


def _part_texts(body: Body, message: int) -> list[str]:
    if message >= len(body.messages):
        return []
    content = body.messages[message].get("content")
    parts = content if isinstance(content, list) else []
    return [bare(str(part.get("text", ""))) for part in parts if isinstance(part, dict)]


def bare(block: str) -> str:
    """A block without what its place in the list gives it: bullet, number, score."""
    return " ".join(_INDEX.sub("", _SCORE.sub("", _LABEL.sub("", block))).split())


def _paragraphs(text: str) -> list[str]:
    return [
        bare(block) for block in re.split(r"\r?\n\s*\r?\n|</(?:doc|document|passage|source)>", text) if block.strip()
    ]


def _lines(text: str) -> list[str]:
    return [bare(line) for line in text.splitlines() if line.strip()]


def _reordered(a: Sequence[str], b: Sequence[str]) -> str | None:
    """`all` when the same blocks come in another order, `some` when at least two of those in common do."""
    start = next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), None)
    if start is None:
        return None
    rest_a, rest_b = list(a[start:]), list(b[start:])
    if Counter(rest_a) == Counter(rest_b):
        return "all"
    common = set(rest_a) & set(rest_b)
    places = [rest_b.index(block) for block in dict.fromkeys(rest_a) if block in common]
    has_turned = any(second < first for first, second in pairwise(places))
    # The first block, too, must be one of those that moved: else something else differs first.
    return "some" if has_turned and (rest_a[0] in common or rest_b[0] in common) else None


def _are_passages(blocks: Sequence[str], texts: Texts, heading: str) -> bool:
    moved = texts.a[: texts.offset + 400][-800:] + "\n" + heading[-400:]
    return bool(_RETRIEVED.search(moved)) and _words(blocks) >= _PASSAGE_WORDS


def _words(blocks: Sequence[str]) -> float:
    return sum(len(block.split()) for block in blocks) / max(1, len(blocks))


def _of_items(texts: Texts) -> Found | None:
    """`EU, US or APAC` in one line, also as Python writes a set."""
    a, b = (_items(text, texts.offset) for text in (texts.a, texts.b))
    is_list = len(a) >= 2 and max(len(item.split()) for item in a) <= 6
    if is_list and a != b and Counter(a) == Counter(b):
        return "list_order", "likely", None
    return None


def _items(text: str, offset: int) -> list[str]:
    begin = max(text.rfind(sign, 0, offset) for sign in "\n:{[(") + 1
    ends = [end for end in (text.find(sign, offset) for sign in ("\n", "}", "]", ")", ". ")) if end >= 0]
    line = text[begin : min(ends, default=len(text))]
    items = re.split(r"[,;|]|\s(?:and|or|und|oder)\s", line)
    return [item.strip(" .'\"`") for item in items if item.strip(" .'\"`")]
