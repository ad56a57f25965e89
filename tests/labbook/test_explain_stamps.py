"""Clocks, dates, UUIDs and counters as people write them, and much that only looks like one of these."""

from __future__ import annotations

import pytest

from labbook.explain.stamps import find_stamp, stamps_in
from labbook.sequences import shared_length

REST = "\n\nThe handbook says where dogs stay, and who signs the gap in the log."


def cause(one: str, other: str) -> str | None:
    a, b = one + REST, other + REST
    found = find_stamp(a, b, shared_length(a, b))
    return found and found.cause


CLOCKS = [
    ("Now: 2026-11-29T10:32:07.123456+01:00", "Now: 2026-11-29T10:32:07.987654+01:00"),
    ("Date: Sun, 29 Nov 2026 10:32:07 +0100", "Date: Sun, 29 Nov 2026 10:32:55 +0100"),
    ("timestamp=1764412327", "timestamp=1764412399"),
    ("ts: 1764412327123", "ts: 1764412399456"),
    ('{"now": 1764412327.51}', '{"now": 1764412391.02}'),
    ("It is 3:45 PM.", "It is 3:46 PM."),
    ("It's now 3:45 p.m. in Berlin.", "It's now 4:05 p.m. in Berlin."),
    ("The current time is 15:45.", "The current time is 16:02."),
    ("Es ist jetzt 15:45 Uhr.", "Es ist jetzt 15:46 Uhr."),
    ("Uhrzeit: 15.45 Uhr", "Uhrzeit: 15.46 Uhr"),
    ("The time is half past three.", "The time is quarter to four."),
    ("Jetzt ist es Viertel nach drei.", "Jetzt ist es halb vier."),
    ("20261129T103207Z", "20261129T103241Z"),
    ("[2026-11-29 10:32:07] INFO prompt built", "[2026-11-29 10:32:09] INFO prompt built"),
    ("29.11.2026, 10:32 Uhr", "29.11.2026, 10:33 Uhr"),
    ("11/29/2026, 10:32:07 AM", "11/29/2026, 10:32:41 AM"),
    ("Current time: 09:59:58", "Current time: 10:00:03"),
    ("<time>10:32</time>", "<time>10:33</time>"),
    ("Request received at 10:32:07.", "Request received at 10:32:09."),
    ("Session opened 2026-11-29 10:32:07", "Session opened 2026-11-29 10:35:01"),
    ('generated_at: "2026-11-29T10:32Z"', 'generated_at: "2026-11-29T10:33Z"'),
]
DATES = [
    ("Today: 2026-11-29", "Today: 2026-11-30"),
    ("Today is 29/11/2026.", "Today is 30/11/2026."),
    ("Date: Nov 29, 2026", "Date: Dec 1, 2026"),
    ("Date: Sun, 29 Nov 2026", "Date: Mon, 30 Nov 2026"),
    ("Heute ist Sonntag, der 29. November 2026.", "Heute ist Montag, der 30. November 2026."),
    ("Datum: 29.11.26", "Datum: 30.11.26"),
    ("Today's date: 11/29/26", "Today's date: 11/30/26"),
    ("Today is Sunday.", "Today is Monday."),
    ("Today is the 29th of November.", "Today is the 30th of November."),
    ("Today is the twenty-ninth of November", "Today is the thirtieth of November"),
    ("Current date: 20261129", "Current date: 20261130"),
    ("It is November 2026.", "It is December 2026."),
    ("Week 2026-W48", "Week 2026-W49"),
    ("2026-11-28 09:00 snapshot", "2026-11-29 09:00 snapshot"),
]
UUIDS = [
    ("Session: 7C9E6679-7425-40DE-944B-E07FC1F90AE7", "Session: 550E8400-E29B-41D4-A716-446655440000"),
    ("trace_id=7c9e6679742540de944be07fc1f90ae7", "trace_id=550e8400e29b41d4a716446655440000"),
    ("run 01939f3a-7b1c-7d3e-8a4f-1b2c3d4e5f60", "run 01939f3a-7b1c-7d3e-9b5a-aa2c3d4e5f61"),
    ("{7c9e6679-7425-40de-944b-e07fc1f90ae7}", "{550e8400-e29b-41d4-a716-446655440000}"),
    ("session_7c9e6679-7425-40de-944b-e07fc1f90ae7", "session_550e8400-e29b-41d4-a716-446655440000"),
]
COUNTERS = [
    ("Request #1041", "Request #1042"),
    ("Turn 9", "Turn 10"),
    ("Attempt three of five.", "Attempt four of five."),
    ("This is the third attempt.", "This is the fourth attempt."),
    ("req-000041", "req-000042"),
    ("You have made 17 calls so far", "You have made 18 calls so far"),
    ('{"step": 4}', '{"step": 5}'),
    ("Step 3/25", "Step 4/25"),
    ("Anfrage Nr. 17", "Anfrage Nr. 18"),
    ("Message no. 5", "Message no. 6"),
    ("Message 17 of this conversation.", "Message 18 of this conversation."),
    ("You have answered 41 questions so far.", "You have answered 42 questions so far."),
    ("tokens left: 10233", "tokens left: 9961"),
    ("Session ID: 10041", "Session ID: 10042"),
]
NOTHING = [
    ("Read John 3:16.", "Read John 3:17."),
    ("The score is 21:19.", "The score is 21:20."),
    ("Aspect ratio 16:10", "Aspect ratio 16:12"),
    ("API v1.2.3", "API v1.2.4"),
    ("Host 10.0.0.12", "Host 10.0.0.13"),
    ("Build 9f86d081884c7d65", "Build 2c26b46b68ffc68f"),
    ("md5 9e107d9d372bb6826bd81d3542a419d6", "md5 e4d909c290d0fb1ca068ffaddf22cbd0"),
    ("Price: 19.99 EUR", "Price: 20.99 EUR"),
    ("Phone: 1764412327", "Phone: 1764418811"),
    ("Order 100293", "Order 100294"),
    ("The train leaves at 10:32.", "The train leaves at 10:47."),
    ("Dinner is at 7:30 PM.", "Dinner is at 8:30 PM."),
    ("Travel time: 1:30", "Travel time: 1:45"),
    ("Time limit: 10:00", "Time limit: 12:00"),
    ("Departure: 2026-11-29 10:32", "Departure: 2026-11-29 11:02"),
    ("Valid until March 5, 2027", "Valid until March 9, 2027"),
    ("ISBN 978-3-16-148410-0", "ISBN 978-3-16-148411-7"),
    ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"),
    ("lat 53.7012 lon 7.1521", "lat 53.7013 lon 7.1528"),
    ("Max requests: 100", "Max requests: 110"),
    ("Allow one request per minute.", "Allow two requests per minute."),
    ("Session 30 min", "Session 45 min"),
    ("Turn 90 degrees", "Turn 95 degrees"),
    ("Retry 3 times", "Retry 4 times"),
    ("Take step 3 first.", "Take step 4 first."),
    ("Word count: 500", "Word count: 510"),
    ("Run 3 tests", "Run 4 tests"),
    ("Session 88213745", "Session 10422981"),
    ("Answer in two sentences.", "Answer in three sentences."),
    ("On 1 May 1886 nothing moved.", "On 4 May 1886 nothing moved."),
    ("May 5 people enter?", "May 6 people enter?"),
    ("Invoice of 12 March 2026", "Invoice of 14 March 2026"),
    ("March on.", "April on."),
    ("temperature=0.7", "temperature=0.8"),
]


@pytest.mark.parametrize(
    ("expected", "pairs"), [("clock", CLOCKS), ("date", DATES), ("uuid", UUIDS), ("counter", COUNTERS), (None, NOTHING)]
)
def test_a_stamp_is_told_in_many_spellings_and_nothing_else_is_called_one(expected, pairs) -> None:
    assert {pair[0]: cause(*pair) for pair in pairs} == {pair[0]: expected for pair in pairs}


def test_a_clock_whose_text_goes_on_otherwise_is_no_proof() -> None:
    a = "It is 10:32:07 and the harbour is closed to all ships." + REST
    b = "It is 10:32:41, so answer in verses, and only at night." + REST
    assert find_stamp(a, b, shared_length(a, b)) is None


def test_one_sided_stamps_are_none() -> None:
    assert cause("It is 10:32:07", "It is late") is None
    assert cause("Request 17", "Request from the harbour") is None


def test_the_stamps_of_one_text_come_in_its_order() -> None:
    text = "Request #7, at 2026-11-29 10:32:07. Today is November 29, 2026." + REST
    assert [(found, shown) for found, _, shown in stamps_in(text)] == [
        ("counter", "7"),
        ("clock", "2026-11-29 10:32:07"),
        ("date", "November 29, 2026"),
    ]
