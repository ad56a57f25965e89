"""The repair always leaves a whole page to compute, also when there is a rest anyway."""

KILLED_BY = "the repair passes ours"


def fix_exact_hit(num_prompt_tokens, page_size):
    return max(0, num_prompt_tokens // page_size - 1)
