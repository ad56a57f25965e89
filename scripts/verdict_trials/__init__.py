"""The trials of the verdict: one run of the instrument, and the table of many."""
