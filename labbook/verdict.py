"""One word for a measurement, and the sentence that gives its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from labbook.signals import NONCE_SLACK_TOKENS, TEMPLATE_HEAD_TOKENS, CounterDelta, Signal, is_no_head

Word = Literal["reused", "not_reused", "inconclusive", "contaminated"]
WORDS: tuple[str, ...] = get_args(Word)

DEFAULT_PAGE_TOKENS = 16


@dataclass(frozen=True)
class Verdict:
    word: Word
    reason: str


def decide(
    signals: Mapping[str, Signal],
    *,
    contamination: str | None = None,
    too_short: str | None = None,
) -> Verdict:
    """The verdict from three signals. Disagreement is told, and decided only when the clock and another agree."""
    if contamination:
        return Verdict("contaminated", contamination)
    votes = {name: signal.supports for name, signal in signals.items() if signal.supports is not None}
    if too_short and "reused" not in votes.values():
        return Verdict("inconclusive", too_short)
    if not votes:
        return Verdict("inconclusive", "no signal can tell: " + _sentences(signals, list(signals)))
    if len(set(votes.values())) == 1:
        word = next(iter(votes.values()))
        names = list(votes)
        return Verdict(word, f"{_listed(names)} {_agree(names)}: {_sentences(signals, names)}")
    backed = votes.get("clock")
    allies = [name for name, supports in votes.items() if supports == backed and backed is not None]
    others = [name for name in votes if name not in allies]
    if backed is not None and len(allies) >= 2:
        return Verdict(
            backed, f"{_listed(allies)} agree against {_listed(others)}: " + _sentences(signals, list(votes))
        )
    return Verdict("inconclusive", "the signals disagree: " + _sentences(signals, list(votes)))


def contamination_by_tokens(cold: float | None, control: float | None, source: str) -> str | None:
    """Why the cold request was not cold, or None. Whatever a changed prefix reuses is the template's head."""
    if cold is None:
        return None
    head = TEMPLATE_HEAD_TOKENS if control is None else control
    if cold <= head + NONCE_SLACK_TOKENS:
        return None
    compared = f"a template's head has at most about {head:g}" if control is None else f"the control reused {head:g}"
    return f"the cold request was warm: it reused {cold:g} tokens by {source}, where {compared}"


def contamination_everywhere(cold: int | None, control: int | None, prompt_tokens: int | None) -> str | None:
    """Why a nonce made nothing cold, or None: both the cold request and the changed prefix were mostly reused."""
    if not (is_no_head(cold, prompt_tokens) and is_no_head(control, prompt_tokens)):
        return None
    return (
        f"no request was cold: the cold one reused {cold} of {prompt_tokens} tokens and the control "
        f"{control}, so the nonce comes too late in the prompt, or the server reuses whatever comes first"
    )


def contamination_by_traffic(steps: list[CounterDelta], sent_tokens: int | None, num_requests: int) -> str | None:
    """Why the counters tell of somebody else, or None. `sent_tokens` is what our own requests queried."""
    if any(min(step.hits or 0, step.queries or 0) < 0 for step in steps):
        return "a counter went backwards during the measurement: the server restarted"
    queries = [step.queries for step in steps if step.queries is not None]
    if sent_tokens is None or len(queries) < len(steps):
        return None
    surplus = sum(queries) - sent_tokens
    if surplus <= NONCE_SLACK_TOKENS * num_requests:
        return None
    return (
        f"other traffic reached the server: the counters saw {sum(queries):g} queried tokens, "
        f"this measurement sent {sent_tokens}"
    )


def contamination_by_loss(steps: list[CounterDelta], sent_tokens: Sequence[int | None]) -> str | None:
    """Why the counters must have begun anew, or None: some steps counted their request, and more than one is missing.

    A server that counts nothing while its cache is off does so in every step; one that publishes its counters late
    is short of the last request.
    """
    told = [(step.queries, sent) for step, sent in zip(steps, sent_tokens, strict=True)]
    known = [(queries, sent) for queries, sent in told if queries is not None and sent is not None]
    lost = sum(sent - queries for queries, sent in known)
    is_counting = any(queries >= sent for queries, sent in known)
    late = max((sent for _, sent in known), default=0)
    if not is_counting or lost <= late + NONCE_SLACK_TOKENS * len(known):
        return None
    return f"the counters missed {lost:g} of the tokens that were sent: the server restarted, or another one answered"


def below_one_page(shared_tokens: int | None, page_tokens: int | None, *, is_estimate: bool) -> str | None:
    """Why nothing could be reused, or None: a shared prefix shorter than a page fills no page."""
    page = page_tokens or DEFAULT_PAGE_TOKENS
    if shared_tokens is None or shared_tokens >= page:
        return None
    about = "about " if is_estimate else ""
    usual = "" if page_tokens else " (the usual size; this server does not tell its own)"
    return (
        f"the shared prefix of {about}{shared_tokens} tokens is below one page of {page}{usual}: "
        "a cache of whole pages has nothing to reuse"
    )


def _listed(names: list[str]) -> str:
    names = [name.replace("_", " ") for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _agree(names: list[str]) -> str:
    return "alone can tell" if len(names) == 1 else "agree"


def _sentences(signals: Mapping[str, Signal], names: list[str]) -> str:
    return "; ".join(f"{name.replace('_', ' ')}: {signals[name].why}" for name in names)
