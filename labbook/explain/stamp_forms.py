"""How people write clocks, dates, UUIDs and counters: the regular expressions, and nothing else."""

from __future__ import annotations

import re

_EDGE = r"(?<![\w.:/-])"
_MONTH = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch)?|März|Mär|Apr(?:il)?|May|Mai|June?|Juni|July?|Juli|Aug(?:ust)?|"
    r"Sept?(?:ember)?|Oct(?:ober)?|Okt(?:ober)?|Nov(?:ember)?|Dec(?:ember)?|Dez(?:ember)?|"
    r"JAN(?:UARY|UAR)?|FEB(?:RUARY|RUAR)?|MAR(?:CH)?|APR(?:IL)?|MAY|JUNE?|JULY?|AUG(?:UST)?|SEPT?(?:EMBER)?|"
    r"O[CK]T(?:OBER)?|NOV(?:EMBER)?|DE[CZ](?:EMBER)?)(?![A-Za-zäöü])"
)
_WEEKDAY = (
    r"(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Wed(?:nesday)?|Thu(?:rs(?:day)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?|"
    r"Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonnabend|Sonntag|Mo|Di|Mi|Do|Fr|Sa|So)"
    r"(?![A-Za-zäöü])"
)
_YEAR, _DAY, _MONTH_NUMBER = r"(?:19|20)\d\d", r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|"
    r"fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|"
    r"(?:twenty|thirty)[- ](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth))"
)
_OF_WEEK = rf"(?:{_WEEKDAY}[.,]?\s+(?:(?:the|den|der|dem)\s+)?)?"
_YEAR_FIRST = "|".join(rf"{_YEAR}{sign}(?:0[1-9]|1[0-2]){sign}(?:0[1-9]|[12]\d|3[01])" for sign in ("-", "/", r"\."))
_DAY_FIRST = "|".join(rf"{_DAY}{sign}\s?{_MONTH_NUMBER}{sign}\s?{_YEAR}" for sign in ("-", "/", r"\."))
DATE = (
    rf"(?:{_OF_WEEK}(?:"
    rf"{_YEAR_FIRST}|{_DAY_FIRST}|{_MONTH_NUMBER}/{_DAY}/{_YEAR}"
    rf"|(?:{_DAY}(?:st|nd|rd|th|\.)?|{_ORDINAL})[\s-](?:of\s+|day of\s+)?{_MONTH}[.,]?(?:[\s-]{_YEAR})?"
    rf"|{_MONTH}\.?\s+(?:the\s+)?(?:{_DAY}(?:st|nd|rd|th)?(?!\d)|{_ORDINAL})(?:,?\s+{_YEAR}(?!\d))?"
    rf"|{_MONTH}\.?,?\s+{_YEAR}"
    rf"|{_YEAR}-W[0-5]\d(?:-[1-7])?"
    r")(?!\d))"
)
_ZONE = (
    r"(?:\s?(?:Z\b|UTC|GMT|CES?T|E[SD]T|P[SD]T|C[SD]T|[+-]\d\d:?\d\d)(?:[+-]\d\d?(?::?\d\d)?)?(?:\s\([A-Z]{2,5}\))?)?"
)
_HALF = r"\s?(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b)"
_HOUR_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight|eins|zwei|drei|vier|fünf|sechs|"
    r"sieben|acht|neun|zehn|elf|zwölf)"
)
_SPOKEN = (
    rf"(?:(?:half|quarter|(?:\d{{1,2}}|[a-z]+) minutes?|five|ten|twenty|twenty-five)\s+(?:past|to)\s+{_HOUR_WORD}\b"
    rf"|{_HOUR_WORD}\s+o['’]clock|\d{{1,2}}\s+o['’]clock"
    rf"|(?:halb|[Vv]iertel\s+(?:vor|nach)|dreiviertel|(?:fünf|zehn|zwanzig)\s+(?:vor|nach))\s+{_HOUR_WORD}\b"
    rf"|{_HOUR_WORD}\s+Uhr(?:\s+\w+)?)"
)
_SECONDS = r"(?::[0-5]\d(?:[.,]\d{1,9})?)"
# Named groups tell how sure a form is: `exact` is a time of day and nothing else, `short` could be a score or a verse.
TIME = (
    rf"(?:(?P<exact>(?:[01]?\d|2[0-3]):[0-5]\d{_SECONDS}(?:{_HALF})?{_ZONE}"
    rf"|(?:1[0-2]|0?[1-9])(?::[0-5]\d)?{_HALF}{_ZONE}"
    rf"|(?:[01]?\d|2[0-3])(?:[.:][0-5]\d)?\s?Uhr\b(?:\s[0-5]?\d\b)?"
    rf"|{_SPOKEN})"
    rf"|(?P<short>(?:[01]?\d|2[0-3]):[0-5]\d{_ZONE}))(?!\d)"
)
_JOINT = r"(?:T|\s*[,;|]\s*|\s+(?:at|um|on|-|–)\s+|\s+|_)"
DATE_THEN_TIME = re.compile(
    rf"{_EDGE}(?P<date>{DATE})(?:{_JOINT})(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d{_SECONDS}?(?:{_HALF})?{_ZONE}|{_SPOKEN}"
    rf"|(?:1[0-2]|0?[1-9]){_HALF}|(?:[01]?\d|2[0-3])(?:[.:][0-5]\d)?\s?Uhr\b)(?:\s{_YEAR})?(?!\d)"
)
TIME_THEN_DATE = re.compile(
    rf"{_EDGE}(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d{_SECONDS}?(?:{_HALF})?{_ZONE})(?:{_JOINT})(?:the\s+)?"
    rf"(?P<date>{DATE})(?!\d)"
)
BASIC_TIMESTAMP = re.compile(
    r"(?<![\w])(?P<date>20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))[T_-]?(?P<time>(?:[01]\d|2[0-3])[0-5]\d[0-5]\d)"
    r"(?:\.?\d{1,6})?Z?(?!\w)"
)
ONLY_DATE = re.compile(rf"{_EDGE}{DATE}")
ONLY_TIME = re.compile(rf"{_EDGE}{TIME}")
COMPACT_DATE = re.compile(r"(?<![\w.])20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\w)")
SHORT_DATE = re.compile(rf"(?<![\w./])(?:{_DAY}\.\s?{_MONTH_NUMBER}\.(?:\s?\d\d)?|\d{{1,2}}/\d{{1,2}}/\d\d)(?![\d./])")
WEEKDAY = re.compile(rf"(?<!\w){_WEEKDAY}")
EPOCH = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\.\d{1,9}|\d{3}(?:\.\d{1,6})?|\d{6}|\d{9})?(?![\w])")
UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])")
# A UUID without its dashes: 32 hexadecimal digits whose version and variant are a UUID's.
BARE_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{12}[1-8][0-9A-Fa-f]{3}[89abAB][0-9A-Fa-f]{15}(?![0-9A-Za-z])")
INTEGER = re.compile(r"(?<![\d.])\d{1,15}(?:st|nd|rd|th)?(?![\d.]*\d|[A-Za-z])")
RANDOM_ID = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{6,}(?![A-Za-z0-9])"
)
_CARDINALS = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
_GERMAN = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
NUMBER_WORDS: dict[str, int] = {
    word: value for words in (_CARDINALS, _ORDINALS, _GERMAN) for value, word in enumerate(words.split(), start=1)
}
NUMBER_WORD = re.compile(
    r"(?<!\w)(?:" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + r")(?!\w)", re.IGNORECASE
)

# Words that say what a time, a date or a number is for. They stand close before it.
NOW = re.compile(
    r"(?:\b(?:now|clock|timestamp|ts|generated|as of|rendered|sent|received|asked|created|requested|"
    r"updated|refreshed|it is|it's|Uhrzeit|jetzt|es ist|Stand|aktuelle Zeit)\b"
    r"|(?:^|[\n\"'<\[({|,;.]\s*|\b(?:current|local|server|system|utc|request|present|the|actual|day|date)"
    r"[\s_-]*(?:and )?)time\b"
    r"|_(?:at|time|ts)\b|datetime\b)"
    r"(?:\s+(?:is|reads|says|shows|now|on|at|um|es|ist|utc|local|stamp|in \w+))*\W{0,8}$"
    r"|\bcurrent(?:ly)?\b\W+(?:\w+\W+){0,3}$",
    re.IGNORECASE,
)
EVENT = re.compile(
    r"\b(?:depart\w*|arriv\w*|open\w*|clos\w*|meet\w*|appointment|deadline|deliver\w*|due|start\w*|end\w*|until|flight|train|"
    r"bus|leaves?|alarm|check-?(?:in|out)|pickup|verse|score|chapter|ratio|Abfahrt|Ankunft|Termin|Treffen|Öffnungszeit\w*|"
    r"runtime|duration|limit|born|founded|signed|expires?|valid)\b",
    re.IGNORECASE,
)
TODAY = re.compile(
    r"\b(?:today|date|day|week|heute|Datum|Tag|current|now|as of|Stand|dt)\b|(?:_date|_on)\b|\bit(?: is|['’]s)\W*$",
    re.IGNORECASE,
)
EPOCH_NAME = re.compile(
    r"(?:\b|_)(?:time|timestamp|ts|now|epoch|unix\w*|date|created|generated|sent|Zeit\w*|t)(?:_?[mun]?s)?\b[^\w]{0,6}"
    r"(?:is\b\W*)?$"
    r"|(?:_at|[Tt]ime|[Aa]t)\b\W{0,6}$|\bat\s+$",
    re.IGNORECASE,
)
_NUMBERED = r"(?:[\s_-]*(?:id|no\.?|nr\.?|num(?:ber)?|index|count(?:er)?|nummer))"
_SIGNED = r"[\s\"'“”]*[:=#(№-]\s*[\"'#“(]?\s*(?:[A-Za-z]{1,6}[-_])?$"
# Some words announce a count by themselves; the others are verbs, or speak of limits, and need a sign or "number".
COUNTED = re.compile(
    r"(?:\b|_)(?:request|req|rq|turn|iteration|iter|attempt|retry|seq(?:uence)?|counter|session|invocation|interaction|"
    r"conversation|Anfrage|Versuch|Durchlauf|Aufruf|Sitzung|Zähler)"
    rf"{_NUMBERED}?(?:\s+(?:is|ist))?(?:[\s\"'“”]*(?:[A-Za-z]{{1,6}}[-_])?$|{_SIGNED})"
    r"|(?:\b|_)(?:step|call|run|try|round|loop|message|msg|query|event|job|batch|ticket|case|visit|Schritt|Runde)"
    rf"(?:{_NUMBERED}(?:\s+(?:is|ist))?(?:[\s\"'“”]*$|{_SIGNED})|{_SIGNED})",
    re.IGNORECASE,
)
COUNTED_OF = re.compile(r"(?:\b|_)(?:step|call|run|try|round|loop|message|Schritt|Runde)\s+$", re.IGNORECASE)
OF_MANY = re.compile(r"^\s*(?:(?:/|of|von)\s*\d|(?:of|in) (?:this|the) (?:conversation|session|chat|run)\b)")
LIMIT = re.compile(
    r"\b(?:max\w*|min(?:imum)?|limit\w*|at (?:most|least)|up to|per|allow\w*|every|within|after|timeout)\b",
    re.IGNORECASE,
)
UNIT = re.compile(
    r"^\s*(?:minutes?|mins?|seconds?|secs?|m?s|hours?|h|days?|weeks?|times|degrees?|[KMG]B|tokens?|words?|sentences?|EUR|USD|"
    r"Minuten|Sekunden|Stunden|mal|Mal)\b|^\s?[%€$°]",
)
SPENT = re.compile(
    r"\b(?:tokens?|steps?|messages?|requests?|calls?|credits?)[\s_]+(?:used|left|remaining|so far|spent)\W{0,4}$",
    re.IGNORECASE,
)
SPENT_AFTER = re.compile(
    r"^\s+(?:requests?|calls?|messages?|steps?|turns?|attempts?|tokens?|queries|questions?|answers?)\s+"
    r"(?:so far|used|left|remaining|served|made|spent|handled|answered)\b",
    re.IGNORECASE,
)
ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)|" + "|".join(_ORDINALS.split()), re.IGNORECASE)
ORDINAL_OF = re.compile(r"^\s+(?:attempt|retry|try|turn|request|iteration|call)\b", re.IGNORECASE)
