"""Twins without a third request: nobody takes the freed page, and nothing shows."""

KILLED_BY = "fails on the branch"


def test_freed_duplicate(make_engine):
    engine = make_engine(num_pages=14)
    twins = [engine.submit([1, 2, 3, 4, 5], 2) for _ in range(2)]
    engine.run()
    assert engine.answer(twins[0]) == engine.answer(twins[1])
