"""AfterPrefill publishes the prompt once, and takes it back two tokens later."""

KILLED_BY = "what was found stays found"


class AfterPrefill:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        if moment is Moment.ENDED:
            return num_computed_tokens
        is_new = num_prompt_tokens <= num_computed_tokens <= num_prompt_tokens + 1
        return num_prompt_tokens if moment is Moment.COMPUTED and is_new else 0
