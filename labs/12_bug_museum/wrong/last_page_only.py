"""Only the last of the pages that were published ahead leaves the index."""

KILLED_BY = "the repair passes your test"


def fix_published_early(published_ahead):
    return published_ahead[-1:]
