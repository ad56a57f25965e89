"""The found page goes into the table without a reference: its first owner frees it under the second."""

KILLED_BY = "the repair passes your test"


def fix_freed_duplicate(page_table, position, found, retain, release):
    own, page_table[position] = page_table[position], found
    release(own)
