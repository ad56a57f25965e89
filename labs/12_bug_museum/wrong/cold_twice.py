"""Two prompts that share nothing: no prefix is restored."""

KILLED_BY = "fails on the branch"


def test_lost_position(make_engine):
    engine = make_engine()
    engine.ask([1, 2, 3, 4, 5], 2)
    require_right(make_engine, engine, [6, 7, 8])
