"""Explain two request bodies, or two lists of token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labbook.errors import UsageError
from labbook.explain.advice import NONE
from labbook.explain.arithmetic import reusable
from labbook.explain.body import Body, as_body
from labbook.explain.cause import Cause, find_cause
from labbook.explain.divergence import Divergence, diverge
from labbook.explain.explanation import Explanation, Side
from labbook.explain.rendered import Rendered, Renderer
from labbook.explain.tokenizer import TokenizerRenderer, load
from labbook.explain.words import WordRenderer

PAGE_TOKENS = 16
_BEFORE_CHARS, _AFTER_CHARS = 48, 64


def explain(
    a: Mapping[str, Any] | Body, b: Mapping[str, Any] | Body, tokenizer: Any = None, page_tokens: int = PAGE_TOKENS
) -> Explanation:
    """Where the prompt of body `b` parts from that of the earlier body `a`, and why.

    `tokenizer` is a folder with tokenizer.json and tokenizer_config.json, an object with `render_chat`, `encode` and
    `decode` (the mini engine's tokenizer), a renderer such as `ServerRenderer`, or None: then words are compared, and
    the chat template is not seen. Raises UsageError for what is no request body.
    """
    renderer = as_renderer(tokenizer)
    first, second = as_body(a, "the first body"), as_body(b, "the second body")
    return explain_rendered(renderer.render(first), renderer.render(second), page_tokens)


def explain_ids(a: Sequence[int], b: Sequence[int], page_tokens: int = PAGE_TOKENS) -> Explanation:
    """The same for two prompts of which only the token ids are known."""
    return explain({"prompt": list(a)}, {"prompt": list(b)}, None, page_tokens)


def as_renderer(tokenizer: Any) -> Renderer:
    """The renderer that `explain`'s argument `tokenizer` stands for."""
    if tokenizer is None:
        return WordRenderer()
    if hasattr(tokenizer, "render"):
        renderer: Renderer = tokenizer
        return renderer
    if hasattr(tokenizer, "render_chat"):
        return TokenizerRenderer(tokenizer)
    return load(str(tokenizer))


def explain_rendered(a: Rendered, b: Rendered, page_tokens: int = PAGE_TOKENS) -> Explanation:
    """The same for two bodies that are rendered already, by the same renderer."""
    if page_tokens < 1:
        raise UsageError(f"a page of {page_tokens} tokens cannot be: give at least 1")
    if a.unit != b.unit:
        raise UsageError(
            "one prompt is given as token ids, the other as text: give --tokenizer or --base-url to compare them"
        )
    divergence = diverge(a, b)
    notes = _notes(a.body, b.body)
    if divergence is None:
        sides = [Side(len(side.tokens), None, "", side.text[-_BEFORE_CHARS:], "") for side in (a, b)]
        return Explanation(
            NONE, "certain", None, None, "equal", len(b.tokens), page_tokens, 0, 0, a.unit, sides[0], sides[1], notes
        )
    cause = find_cause(divergence, page_tokens)
    lost = _lost(divergence, cause)
    return Explanation(
        cause=cause.name,
        confidence=cause.confidence,
        position=divergence.position,
        field=cause.field,
        why=cause.why,
        shared_tokens=divergence.position,
        page_tokens=page_tokens,
        lost_tokens=lost,
        gain_tokens=_gain(divergence, cause, page_tokens),
        unit=a.unit,
        a=_side(a, divergence),
        b=_side(b, divergence),
        notes=notes,
    )


def _lost(divergence: Divergence, cause: Cause) -> int:
    """Equal tokens behind the difference; at a seam and in history also what the cache holds as other tokens."""
    return max(divergence.equal_after, divergence.cached_otherwise if cause.name in _SAME_TEXT else 0)


_SAME_TEXT = ("retokenized_seam", "template_history")


def _gain(divergence: Divergence, cause: Cause, page_tokens: int) -> int:
    """Tokens of whole pages that could be reused as well if everything movable stood before the difference."""
    if cause.name == NONE:
        return 0
    movable = max(divergence.movable, divergence.cached_otherwise if cause.name in _SAME_TEXT else 0)
    prompt_tokens = len(divergence.b.tokens)
    now = reusable(divergence.position, prompt_tokens, page_tokens)
    return reusable(divergence.position + movable, prompt_tokens, page_tokens) - now


def _side(side: Rendered, divergence: Divergence) -> Side:
    position, at = divergence.position, divergence.offset
    has_token = position < len(side.tokens)
    return Side(
        prompt_tokens=len(side.tokens),
        token=side.tokens[position] if has_token else None,
        token_text=side.token_text(position) if has_token else "",
        before=side.text[max(0, at - _BEFORE_CHARS) : at],
        after=side.text[at : at + _AFTER_CHARS],
    )


def _notes(a: Body, b: Body) -> tuple[str, ...]:
    notes = [
        f"{field} differs, so no page is shared however equal the prompts are"
        for field in sorted(set(a.identity()) | set(b.identity()))
        if a.identity().get(field) != b.identity().get(field)
    ]
    if a.has_images or b.has_images:
        notes.append("images are not seen here: positions behind them are too small")
    return tuple(notes)
