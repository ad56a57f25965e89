"""A test that asks and compares nothing."""

KILLED_BY = "fails on the branch"


def test_unchained_key(make_engine):
    engine = make_engine()
    engine.ask([1, 2, 3, 4, 5], 2)
    engine.ask([9, 9, 3, 4, 5], 2)
