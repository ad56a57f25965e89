"""Figures of the course, drawn through `labbook.figures`: each with a sentence that is computed from its data."""
