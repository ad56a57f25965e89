"""The likely cause of a divergence.

A wrong cause is worse than `unknown`: every judge asks for evidence on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

from labbook.explain import orders
from labbook.explain.advice import NONE, UNKNOWN
from labbook.explain.arithmetic import MIN_RUN_TOKENS
from labbook.explain.corpus import stands_before_corpus
from labbook.explain.divergence import Divergence, is_cut_off
from labbook.explain.ending import is_other_ending
from labbook.explain.forms import find_form
from labbook.explain.hints import doubles_first, hint
from labbook.explain.seam import find_seam, history_differs
from labbook.explain.stamps import find_stamp


@dataclass(frozen=True)
class Cause:
    """`field` is the body field, `why` what speaks for the cause, for `unknown` what the place looks like."""

    name: str
    confidence: str
    field: str
    why: str = ""


_ENDING = "the prompts end differently, and little that is equal follows"
_SEAM = "both texts are equal here, their tokens are not"
_HISTORY = "the bodies are equal up to here, the prompts not"


def find_cause(divergence: Divergence, page_tokens: int) -> Cause:
    """Judges in the order of what they can prove."""
    return (
        _of_template(divergence)
        or _of_order(divergence)
        or _of_text(divergence, page_tokens)
        or Cause(UNKNOWN, "certain", divergence.field, hint(divergence))
    )


def _of_template(divergence: Divergence) -> Cause | None:
    """What shows in tokens and template alone."""
    if confidence := find_seam(divergence):
        return Cause("retokenized_seam", confidence, divergence.field, _SEAM)
    if doubles_first(divergence):
        return Cause(UNKNOWN, "certain", divergence.field, hint(divergence))
    if is_cut_off(divergence):
        return Cause(NONE, "certain", divergence.field, "one prompt goes on where the other ends")
    if history_differs(divergence):
        return Cause("template_history", "certain", divergence.template_field, _HISTORY)
    return None


def _of_order(divergence: Divergence) -> Cause | None:
    """The same pieces in another order, told from the bodies."""
    a, b = divergence.a.body, divergence.b.body
    found = None
    region = divergence.region
    if divergence.field.startswith(("tools", "template text before tools")) or (region is None and a.tools != b.tools):
        found = orders.of_tools(a, b)
        # A template may sort the keys: then their order in the body is not what differs here.
        if found and divergence.field.startswith("tools") and not divergence.field.startswith(found[2] or ""):
            found = None
    if not found and region is None:
        found = orders.of_documents(a, b)
    if not found and region and region.message is not None:
        found = orders.of_messages(a, b) or orders.of_parts(a, b, region.message)
    if not found and divergence.texts:
        found = orders.of_json(divergence.texts)
    if not found:
        return None
    cause, confidence, path = found
    return Cause(cause, confidence, path or divergence.field)


def _of_text(divergence: Divergence, page_tokens: int) -> Cause | None:
    """What the differing field itself shows, on both sides."""
    texts, field = divergence.texts, divergence.field
    if texts is None:
        return Cause(NONE, "certain", field, _ENDING) if is_other_ending(divergence, page_tokens) else None
    if form := find_form(texts):
        return Cause(*form, field)
    heading = _text_before(divergence)
    is_ending = is_other_ending(divergence, page_tokens)
    blocks = orders.of_blocks(texts, heading)
    if blocks and not (is_ending and blocks[0] == "list_order"):  # a question, too, may list things
        return Cause(blocks[0], blocks[1], field)
    stamp = find_stamp(texts.a, texts.b, texts.offset)
    is_all = stamp is not None and stamp.rest_a == stamp.rest_b and _rest_is_equal(divergence)
    if not is_all and is_ending:
        return Cause(NONE, "certain", field, _ENDING)
    if stamp is not None:
        return Cause(stamp.cause, stamp.confidence, field, f"{_short(stamp.a)} against {_short(stamp.b)}")
    if stands_before_corpus(divergence):
        return Cause("user_before_corpus", "likely", field)
    return None


def _rest_is_equal(divergence: Divergence) -> bool:
    """Nothing else differs up to the end, and more follows than was shared: a stamp at the head of a short prompt."""
    a, b = divergence.a, divergence.b
    run = divergence.runs[-1] if divergence.runs else None
    if run is None or run.length < MIN_RUN_TOKENS or run.length < divergence.position:
        return False
    return run.a + run.length == len(a.tokens) and run.b + run.length == len(b.tokens)


def _text_before(divergence: Divergence) -> str:
    message = divergence.region.message if divergence.region else None
    return divergence.b.body.text_of(message - 1) if message else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 48 else text[:45] + "...")
