"""AfterPrefill waits for the first generated token of short prompts."""

KILLED_BY = "each as its name says"


class AfterPrefill:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        if moment is Moment.ENDED:
            return num_computed_tokens
        is_done = num_computed_tokens >= num_prompt_tokens + (num_prompt_tokens < 6)
        return num_prompt_tokens if moment is Moment.COMPUTED and is_done else 0
