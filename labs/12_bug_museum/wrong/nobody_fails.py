"""A leader that does not fail: its pages are good."""

KILLED_BY = "fails on the branch"


def test_published_early(make_engine):
    engine = make_engine()
    engine.submit([1, 2, 3, 4, 5], 2)
    engine.step()
    require_right(make_engine, engine, [1, 2, 3, 4, 5])
