"""Where two prompts diverge, why, what it costs, and what to do.

    from labbook.explain import explain
    print(explain(first_body, second_body, tokenizer="models/smollm2-135m").sentence)

Without a tokenizer words are compared, which costs nothing and sees no template. `Series` explains each body against
the best match among those before it; `lint` warns about one body before anything is sent.
"""

from labbook.explain.body import Body, read_bodies
from labbook.explain.explanation import Explanation
from labbook.explain.lint import Finding, lint
from labbook.explain.pair import PAGE_TOKENS, explain, explain_ids, explain_rendered
from labbook.explain.series import Series

__all__ = [
    "PAGE_TOKENS",
    "Body",
    "Explanation",
    "Finding",
    "Series",
    "explain",
    "explain_ids",
    "explain_rendered",
    "lint",
    "read_bodies",
]
