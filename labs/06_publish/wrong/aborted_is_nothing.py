"""OnFinish wants a complete prompt: what an aborted request computed is thrown away."""

KILLED_BY = "an aborted request leaves what it computed"


class OnFinish:
    def findable_tokens(self, moment, num_computed_tokens, num_prompt_tokens):
        return num_computed_tokens if moment is Moment.ENDED and num_computed_tokens >= num_prompt_tokens else 0
