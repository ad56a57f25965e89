"""Prompts of two customers: everything is said, and as much is shared as can be."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from labs.kit.arrangements import Arrangement, arrangement, missing
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.ferry_desk import Ask, two_asks

Messages = list[dict[str, str]]
NAMES = ("clock", "tools", "customer", "passages", "blank")
ENOUGH = 0.95
"""Of the words that our own repair lets two customers share."""
ROLES = ("system", "user")


def pairs() -> list[tuple[str, Ask, Ask]]:
    """Two customers with a short handbook, two with a long one, and one customer who comes again."""
    first, second = two_asks("357913", num_chapters=3)
    again = dataclasses.replace(first, clock="11:00:00", question="And the bicycle?", ranking=(1, 0, 2), blank="  ")
    two = "two customers"
    return [
        (two, first, second),
        (two, *two_asks("975319", num_chapters=8)),
        ("two questions of one customer", first, again),
    ]


def built(answer: Answer, name: str, ask: Ask) -> Messages:
    messages: Any = getattr(answer, name)(ask)
    is_chat = isinstance(messages, list) and all(
        isinstance(message, dict) and message.get("role") in ROLES and isinstance(message.get("content"), str)
        for message in messages
    )
    if not is_chat or not messages:
        raise Wrong(
            f"{name} returns no list of messages", expected='[{"role": "system", "content": ...}, ...]', actual=messages
        )
    return messages


def text_of(messages: Messages) -> str:
    return "\n".join(f"<{message['role']}> {message['content']}" for message in messages)


def words_shared(one: Messages, other: Messages) -> tuple[int, list[str], list[str]]:
    """How many leading words are equal, blanks counted, and the words of both."""
    words = [text_of(messages).replace("\n", " \n ").split(" ") for messages in (one, other)]
    place = next((n for n, (a, b) in enumerate(zip(*words, strict=False)) if a != b), min(map(len, words)))
    return place, words[0], words[1]


def it_is_a_chat(answer: Answer, name: str) -> None:
    _, first, _ = pairs()[0]
    messages = built(answer, name, first)
    if first.question not in messages[-1]["content"] or messages[-1]["role"] != "user":
        raise Wrong(
            "the last message does not ask the question",
            expected=f"user: ... {first.question}",
            actual=f"{messages[-1]['role']}: {messages[-1]['content'][-60:]}",
        )


def nothing_is_lost(answer: Answer, name: str) -> None:
    for ask in (ask for _, *pair in pairs() for ask in pair):
        lost = missing(arrangement(name), ask, built(answer, name, ask))
        if lost:
            raise Wrong(
                f"{name} leaves something out", expected=f"... {lost[0]} ...", actual="it is nowhere in the prompt"
            )


def the_ranking_is_said(answer: Answer, name: str) -> None:
    if name != "passages":
        return
    _, first, _ = pairs()[0]
    other = dataclasses.replace(first, ranking=(2, 0, 1))
    if text_of(built(answer, name, first)) == text_of(built(answer, name, other)):
        raise Wrong(
            "two rankings make the same prompt",
            expected="the model learns which passage fits best",
            actual="it cannot know",
        )

    require_the_right_passages(built(answer, name, first), first)


def require_the_right_passages(messages: Messages, ask: Ask) -> None:
    """Where passages carry numbers and all of them are named again, the best one must be named first."""
    text = text_of(messages)
    labels = [re.search(r"\[(\w+)\]\W*$", text[: text.index(chapter)]) for chapter in ask.chapters]
    if not all(labels):
        return
    carried = [label[1] for label in labels if label]
    cited = re.findall(
        r"\[(\w+)\]",
        re.sub(
            "|".join(
                rf"\[{label}\]\W*{re.escape(chapter)}" for label, chapter in zip(carried, ask.chapters, strict=True)
            ),
            "",
            text,
        ),
    )
    best = [carried[place] for place in ask.ranking]
    if len(cited) == len(best) and cited != best:
        raise Wrong(
            "other passages are named than those that fit best",
            expected=" ".join(f"[{one}]" for one in best),
            actual=" ".join(f"[{one}]" for one in cited),
        )


def as_much_is_shared_as_can_be(answer: Answer, name: str) -> None:
    for who, first, second in pairs():
        mine, one, other = words_shared(built(answer, name, first), built(answer, name, second))
        best, *_ = words_shared(*(repaired(arrangement(name))(ask) for ask in (first, second)))
        if mine < ENOUGH * best:
            around = slice(max(0, mine - 4), mine + 3)
            raise Wrong(
                f"the prompts of {who} part after {mine} words",
                drawing=f"first   ... {' '.join(one[around])!r}\nsecond  ... {' '.join(other[around])!r}",
                expected=f"about {best} shared words",
                actual=f"{mine} shared words",
            )


def repaired(one: Arrangement) -> Callable[[Ask], Messages]:
    return one.after  # type: ignore[return-value]


def a_model_restores_it(answer: Answer, name: str) -> None:
    """The model `tiny`, asked twice: whole pages of what both prompts share."""
    _, first, second = pairs()[0]
    mine = restored_tokens([built(answer, name, ask) for ask in (first, second)])
    ours = restored_tokens([repaired(arrangement(name))(ask) for ask in (first, second)])
    if mine < ENOUGH * ours:
        raise Wrong(
            "the model restores less than it could",
            expected=f"about {ours} tokens of the second prompt",
            actual=f"{mine} tokens",
        )


def restored_tokens(prompts: list[Messages]) -> int:
    from minivllm import SamplingParams

    llm = tiny()
    llm.reset_prefix_cache()
    outputs = [llm.chat(messages, SamplingParams(max_tokens=1, temperature=0.0)) for messages in prompts]
    return outputs[-1].metrics.cached_tokens


@functools.cache
def tiny() -> Any:
    from minivllm import LLM, EngineConfig

    return LLM("tiny", EngineConfig(num_pages=512))


CAUSES = {
    "clock": "Something that changes with every request stands before something that does not.",
    "tools": "Two orders are an accident here: that of the tools, and that of the keys in a schema.",
    "customer": "The customer belongs behind what is the same for all, and before what one customer asks each time.",
    "passages": "The order of the passages must not depend on the question; that some fit better can be said in words.",
    "blank": "Blanks that nobody sees are tokens as well: do not write what carries no meaning.",
}


WHY = {
    "clock": "Nothing in the server has changed. A clock is the most common reason for a cache that never hits.",
    "tools": "An agent sends its tools in every step: an accident of order costs all of them, every time.",
    "customer": "What is the same for all comes first, then what is the same for one, then what is new.",
    "passages": "Retrieval is where most tokens are, and where the order changes with every question.",
    "blank": "A blank at the end of a line cannot be seen, and ends all sharing. `labbook explain` names it.",
}


def part(name: str) -> Part:
    def checking(check: Callable[[Answer, str], None]) -> Callable[[Answer], None]:
        return lambda answer: check(answer, name)

    return Part(
        (name,),
        (
            Check("it is a chat", checking(it_is_a_chat), "Return chat(system, user), and let the last message ask."),
            Check(
                "nothing is lost",
                checking(nothing_is_lost),
                "What changes was left out instead of moved: the prompt hits, and the answer suffers.",
            ),
            Check(
                "the ranking is said",
                checking(the_ranking_is_said),
                "The order of the passages was the only thing that told which fits best.",
            ),
            Check("as much is shared as can be", checking(as_much_is_shared_as_can_be), CAUSES[name]),
            Check(
                "a model restores it",
                checking(a_model_restores_it),
                "Words are shared, tokens are not: look for a blank before the place where the prompts part.",
            ),
        ),
        WHY[name],
    )


PARTS = tuple(part(name) for name in NAMES)
