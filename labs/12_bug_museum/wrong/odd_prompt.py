"""The prompt does not fill its last page, so one token is always left to compute."""

KILLED_BY = "fails on the branch"


def test_exact_hit(make_engine):
    engine = make_engine()
    engine.ask([1, 2, 3, 4, 5], 2)
    engine.ask([7, 7, 7], 1)
    require_right(make_engine, engine, [1, 2, 3, 4, 5])
