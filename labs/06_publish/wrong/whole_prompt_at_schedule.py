"""AfterPrefill does not look at the moment: the last chunk of a prompt can be found before it is computed."""

KILLED_BY = "only what is computed"


class AfterPrefill:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        if moment is Moment.ENDED:
            return num_computed_tokens
        return num_prompt_tokens if num_computed_tokens >= num_prompt_tokens else 0
