"""Six servers that look alike, each with one thing wrong, and what it takes to prove which is which.

cast.py       the six, and the order in which a learner meets them
troupe.py     starting and stopping them: one process of its own, on loopback
evidence.py   which measurements tell one from another
commands.py   `labs mystery up | status | down`
"""
