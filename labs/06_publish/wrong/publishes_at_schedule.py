"""Incremental lets pages be found before their keys and values exist."""

KILLED_BY = "the README's table"


class Incremental:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        return num_computed_tokens
