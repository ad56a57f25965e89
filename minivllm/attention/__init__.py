"""Attention over pages: the plan of one step, and the ways to carry it out."""
