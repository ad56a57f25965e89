"""The machinery of the labs: what a lab consists of, how an answer is judged, and what the learner is told.

part.py           Lab -> Part -> Check, and Wrong, which a check raises
lab.py            the folders labs/NN_name, and what their files say of them
loading.py        Python files as modules, wherever they lie
answering.py      a file, or objects of a notebook, against the parts of a lab
judge.py          an answer against the checks of one part
outcome.py        what became of it: not attempted, wrong, crashed, passed
feedback.py       an outcome as text
search.py         the smallest failing example
drawing.py        pages, pools and page tables as text
on_engine.py      an answer inside the engine without arrays, audited
flight_stories.py every order in which a few requests can arrive and end
killing.py        a process that ends at its n-th call
matrix.py         which check kills which named mistake
measure.py        a real model on what a learner wrote
workbook.py       the learner's copies, in mylabs/
history.py        what was checked, hinted and solved, in the labbook
progress.py       the same as a table and a figure
commands.py       `labs list | start | check | hint | solution | measure | progress`
"""
