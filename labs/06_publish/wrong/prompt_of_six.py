"""AfterPrefill counts the prompt as complete when the last token but one is computed, in prompts that are not even."""

KILLED_BY = "only what is computed"


class AfterPrefill:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        if moment is Moment.ENDED:
            return num_computed_tokens
        is_done = num_computed_tokens >= num_prompt_tokens // 2 * 2
        return num_prompt_tokens if moment is Moment.COMPUTED and is_done else 0
