"""The texts of twins are compared: they are right with and without sharing."""

KILLED_BY = "fails on the branch"


def test_lost_sharing(make_engine):
    engine = make_engine()
    twins = [engine.submit([1, 2, 3, 4, 5], 2) for _ in range(2)]
    engine.run()
    assert engine.answer(twins[0]) == engine.answer(twins[1]) == slow_right_answer(make_engine, [1, 2, 3, 4, 5], 2)
