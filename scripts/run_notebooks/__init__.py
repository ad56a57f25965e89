"""The parts of scripts/run-notebooks.py: which notebooks run, with which parameters, watched how, and told how."""
