"""Only the failed pages are withdrawn; what others have chained behind them stays and can never be found."""

KILLED_BY = "the README's example"


def withdraw(failed, parent_of):
    return sorted(failed, reverse=True)
