"""The machinery of the labs: what a lab consists of, how an answer is judged, and what the learner is told.

part.py       Lab -> Part -> Check, and Wrong, which a check raises
lab.py        the folders labs/NN_name, and what their READMEs say of them
loading.py    Python files as modules, wherever they lie
judge.py      an answer against the checks of a part: not attempted, wrong, crashed, passed
search.py     the smallest failing example
drawing.py    pages, pools and page tables as text
feedback.py   an outcome as text
workbook.py   the learner's copies, in mylabs/
history.py    what was checked, hinted and solved, in the labbook
commands.py   `labs list | start | check | hint | solution | progress`
"""
