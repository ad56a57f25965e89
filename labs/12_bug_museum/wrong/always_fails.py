"""A test that fails on every engine, the right one included."""

KILLED_BY = "passes on the right engine"


def test_unchained_key(make_engine):
    engine = make_engine()
    assert engine.answer(engine.ask([1, 2, 3, 4, 5], 2)) == [0, 0]
