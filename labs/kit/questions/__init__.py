"""The quiz of each notebook, named like the notebook."""
