"""Clock, date, UUID or counter: what two texts have at their first difference, when both have the same of these there.

A wrong cause is worse than none: both sides must hold the same form, begin it at the same place, and go on alike
behind it; a form that could be something else must be announced by a word before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labbook.explain import stamp_forms as forms

_BEFORE_CHARS, _AFTER_CHARS = 64, 96
_CONTEXT_CHARS = 40
_GOES_ON_CHARS = 12
_NEAR_STEPS = 1000
_NEAR_SHARE = 0.1


@dataclass(frozen=True)
class Stamp:
    """What differs: `a` and `b` as written, and what each text goes on with."""

    cause: str
    confidence: str
    a: str
    b: str
    rest_a: str = ""
    rest_b: str = ""


@dataclass(frozen=True)
class Pair:
    """A match on both sides that begins at the same place. `before` is the text that announces it."""

    a: re.Match[str]
    b: re.Match[str]
    before: str


Judge = Callable[[Pair], tuple[str, str] | None]


def find_stamp(a: str, b: str, offset: int) -> Stamp | None:
    """The stamp that covers the first difference of two texts, which is at `offset`."""
    for pattern, judge in _FORMS:
        for pair in _pairs(pattern, a, b, offset):
            rest_a, rest_b = a[pair.a.end() :], b[pair.b.end() :]
            judged = judge(pair) if _go_on_alike(rest_a, rest_b) else None
            if judged is not None:
                return Stamp(*judged, pair.a.group(), pair.b.group(), rest_a, rest_b)
    return None


def stamps_in(text: str) -> Iterator[tuple[str, int, str]]:
    """Cause, place and text of every stamp in one text, as far as one text alone can tell."""
    covered = 0
    found = [(match.start(), -match.end(), match, judge) for p, judge in _FORMS for match in p.finditer(text)]
    for start, _, match, judge in sorted(found, key=lambda one: one[:2]):
        before = text[max(0, start - _CONTEXT_CHARS) : start]
        judged = judge(Pair(match, match, before)) if start >= covered else None
        if judged is not None:
            covered = match.end()
            yield judged[0], start, match.group()


def _pairs(pattern: re.Pattern[str], a: str, b: str, offset: int) -> Iterator[Pair]:
    begin = max(0, offset - _BEFORE_CHARS)
    found_a = {
        m.start(): m for m in pattern.finditer(a, begin, offset + _AFTER_CHARS) if m.start() <= offset <= m.end()
    }
    for other in pattern.finditer(b, begin, offset + _AFTER_CHARS):
        mine = found_a.get(other.start())
        if mine and other.start() <= offset <= other.end() and mine.group() != other.group():
            line = a[max(0, mine.start() - _CONTEXT_CHARS) : mine.start()]
            yield Pair(mine, other, line)


def _go_on_alike(a: str, b: str) -> bool:
    """The text behind both is the same for a while, digits and names of days apart."""
    masked_a, masked_b = _masked(a[:80]), _masked(b[:80])
    alike = 0
    while alike < min(len(masked_a), len(masked_b)) and masked_a[alike] == masked_b[alike]:
        alike += 1
    return alike >= min(_GOES_ON_CHARS, max(len(masked_a), len(masked_b)))


def _masked(text: str) -> str:
    return re.sub(r"\d+", "#", forms.WEEKDAY.sub("@", forms.ONLY_DATE.sub("@", text)))


def _uuid(pair: Pair) -> tuple[str, str]:
    return "uuid", "certain"


def _bare_uuid(pair: Pair) -> tuple[str, str] | None:
    is_named = re.search(r"id|guid|trace|request|session|nonce", pair.before[-24:], re.IGNORECASE)
    return ("uuid", "likely") if is_named else None


def _timestamp(pair: Pair) -> tuple[str, str] | None:
    # A train leaves at a minute; what has seconds was written by a clock.
    has_seconds = all(match.group("time").count(":") >= 2 for match in (pair.a, pair.b))
    if forms.EVENT.search(pair.before) and not has_seconds:
        return None
    same_time = pair.a is not pair.b and pair.a.group("time") == pair.b.group("time")
    is_now = forms.NOW.search(pair.before) or forms.TODAY.search(pair.before)
    return ("date" if same_time else "clock"), "certain" if is_now else "likely"


def _time(pair: Pair) -> tuple[str, str] | None:
    if forms.EVENT.search(pair.before):
        return None
    if forms.NOW.search(pair.before):
        return "clock", "certain"
    # Without a word before it only a time with seconds, at the head of its line, is a stamp.
    has_seconds = all(match.group().count(":") >= 2 for match in (pair.a, pair.b))
    return ("clock", "likely") if has_seconds and _is_first(pair) else None


def _is_first(pair: Pair) -> bool:
    return not pair.before.rpartition("\n")[2].strip(" [(<|#*-")


def _date(pair: Pair) -> tuple[str, str] | None:
    if forms.EVENT.search(pair.before):
        return None
    if forms.TODAY.search(pair.before):
        return "date", "certain"
    # Documents are full of dates: without a word before it only a whole date at the head of its line is a stamp.
    is_whole = all(re.search(r"\d{4}|^[^\W\d]+,", match.group()) for match in (pair.a, pair.b))
    return ("date", "likely") if is_whole and _is_first(pair) else None


def _named_date(pair: Pair) -> tuple[str, str] | None:
    said = pair.before[-24:]
    return ("date", "likely") if forms.TODAY.search(said) and not forms.EVENT.search(pair.before) else None


def _weekday(pair: Pair) -> tuple[str, str] | None:
    return ("date", "likely") if re.search(r"\b(?:today is|heute ist|day:|weekday:)\W*$", pair.before, re.I) else None


def _epoch(pair: Pair) -> tuple[str, str] | None:
    return ("clock", "likely") if forms.EPOCH_NAME.search(pair.before) else None


def _counter(pair: Pair) -> tuple[str, str] | None:
    rests = [match.string[match.end() : match.end() + 40] for match in (pair.a, pair.b)]
    if not _is_counted(pair, rests) or forms.LIMIT.search(pair.before) or any(map(forms.UNIT.search, rests)):
        return None
    one, other = _number(pair.a.group()), _number(pair.b.group())
    if one is None or other is None:
        return None
    step = abs(one - other)
    is_near = step <= _NEAR_STEPS and step <= max(20, _NEAR_SHARE * max(one, other))
    return ("counter", "likely") if is_near else None


def _is_counted(pair: Pair, rests: list[str]) -> bool:
    if forms.COUNTED.search(pair.before) or forms.SPENT.search(pair.before):
        return True
    if forms.COUNTED_OF.search(pair.before) and all(map(forms.OF_MANY.search, rests)):
        return True
    is_ordinal = all(forms.ORDINAL.fullmatch(match.group()) for match in (pair.a, pair.b))
    return all(map(forms.SPENT_AFTER.search, rests)) or (is_ordinal and all(map(forms.ORDINAL_OF.search, rests)))


def _number(text: str) -> int | None:
    digits = re.match(r"\d+", text)
    return int(digits.group()) if digits else forms.NUMBER_WORDS.get(text.lower())


_FORMS: tuple[tuple[re.Pattern[str], Judge], ...] = (
    (forms.UUID, _uuid),
    (forms.BARE_UUID, _bare_uuid),
    (forms.DATE_THEN_TIME, _timestamp),
    (forms.TIME_THEN_DATE, _timestamp),
    (forms.BASIC_TIMESTAMP, _timestamp),
    (forms.ONLY_TIME, _time),
    (forms.EPOCH, _epoch),
    (forms.ONLY_DATE, _date),
    (forms.COMPACT_DATE, _named_date),
    (forms.SHORT_DATE, _named_date),
    (forms.WEEKDAY, _weekday),
    (forms.INTEGER, _counter),
    (forms.NUMBER_WORD, _counter),
)
