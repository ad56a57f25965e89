"""Pairs of prompts as people write them: each cause told, at the token where it is, and no alarm about clean ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("minivllm.models.tiny", exc_type=ImportError)

from labbook.explain import Series, explain, explain_ids, lint
from labbook.explain.advice import CAUSES, NONE, UNKNOWN
from labbook.explain.series import summarize
from tests.labbook.explain_pairs import TOKENIZERS, Tokenizers, folder_of, pairs


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Tokenizers:
    return Tokenizers(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(params=TOKENIZERS)
def name(request: pytest.FixtureRequest) -> str:
    if folder_of(request.param) is None:
        pytest.skip(f"{request.param} was never fetched")
    return str(request.param)


def engine_ids(tokenizers: Tokenizers, name: str, pair: dict[str, Any], body: dict[str, Any]) -> list[int]:
    """The prompt's ids by the mini engine's tokenizer, which knows nothing of labbook."""
    engine = tokenizers.engine(name, pair.get("template"))
    if "messages" not in body:
        return body["prompt"] if isinstance(body["prompt"], list) else engine.encode(body["prompt"])
    messages = copy.deepcopy(body["messages"])
    for message in messages:
        parts = message["content"] or ""
        message["content"] = parts if isinstance(parts, str) else "\n".join(part["text"] for part in parts)
    return engine.encode_chat(messages, body.get("tools"))


def naive_position(a: list[int], b: list[int]) -> int | None:
    for position, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return position
    return None if a == b else min(len(a), len(b))


def told(tokenizers: Tokenizers, name: str, pair: dict[str, Any]) -> Any:
    a, b = (tokenizers.with_ids(pair[side], name) for side in "ab")
    explanation = explain(a, b, tokenizers.labbook(name, pair.get("template")))
    ids_a, ids_b = (engine_ids(tokenizers, name, pair, body) for body in (a, b))
    assert explanation.position == naive_position(ids_a, ids_b) == pair["position"][name]
    assert explanation.a.prompt_tokens == len(ids_a) and explanation.b.prompt_tokens == len(ids_b)
    if explanation.position is not None:
        assert explanation.a.token == (ids_a[explanation.position :] or [None])[0]
        assert explanation.b.token == (ids_b[explanation.position :] or [None])[0]
    return explanation


@pytest.mark.parametrize("pair", pairs("causes"), ids=lambda pair: pair["cause"])
def test_each_of_the_thirteen_causes_is_told_with_its_field_and_token(tokenizers, name, pair) -> None:
    explanation = told(tokenizers, name, pair)
    assert (explanation.cause, explanation.field) == (pair["cause"], pair["field"])
    assert explanation.is_alarm and explanation.fix == CAUSES[pair["cause"]][1]
    assert explanation.lost_tokens > 0


def test_the_data_holds_every_cause_once() -> None:
    assert {pair["cause"] for pair in pairs("causes")} == set(CAUSES) - {UNKNOWN, NONE}
    assert [len(pairs(group)) for group in ("causes", "clean", "unknown")] == [13, 20, 10]


@pytest.mark.parametrize("pair", pairs("clean"), ids=lambda pair: pair["name"])
def test_a_clean_pair_gives_no_alarm(tokenizers, name, pair) -> None:
    explanation = told(tokenizers, name, pair)
    assert (explanation.cause, explanation.is_alarm, explanation.gain_tokens) == (NONE, False, 0)


@pytest.mark.parametrize("pair", pairs("unknown"), ids=lambda pair: pair["name"])
def test_another_cause_is_unknown_and_has_its_position(tokenizers, name, pair) -> None:
    explanation = told(tokenizers, name, pair)
    assert (explanation.cause, explanation.field) == (UNKNOWN, pair["field"])
    assert f"token {explanation.position}" in explanation.sentence


@pytest.mark.parametrize("group", ["causes", "clean", "unknown"])
def test_words_tell_the_same_causes_where_the_bodies_show_them(group) -> None:
    needs_tokens = ("template_history", "retokenized_seam")
    for pair in pairs(group):
        if pair.get("cause") not in needs_tokens:
            explanation = explain(pair["a"], pair["b"])
            assert explanation.cause == pair.get("cause", NONE), pair["name"]
            assert explanation.unit == "word" and "without a tokenizer" in (explanation.caveat or "")


def test_words_see_no_template_and_say_so() -> None:
    (pair,) = (pair for pair in pairs("causes") if pair["cause"] == "template_history")
    explanation = explain(pair["a"], pair["b"])
    assert explanation.cause == NONE and "the chat template is not seen" in (explanation.caveat or "")


def test_the_mini_engines_own_tokenizer_serves_as_it_is(tokenizers) -> None:
    pair = pairs("causes")[0]
    explanation = explain(pair["a"], pair["b"], tokenizers.engine("tiny"))
    assert explanation.position == pair["position"]["tiny"]


def test_a_clock_is_told_at_the_start_in_the_middle_and_nowhere_behind_the_shared_part(tokenizers) -> None:
    text = pairs("clean")[0]["a"]["messages"][0]["content"]

    def body(clock: str, place: int) -> dict[str, Any]:
        words = text.split(" ")
        words.insert(place, f"Current time: {clock}.")
        return {"messages": [{"role": "system", "content": " ".join(words)}, {"role": "user", "content": "Where?"}]}

    causes = [
        explain(body("10:32:07", place), body("10:32:41", place), tokenizers.labbook("tiny")).cause for place in (0, 80)
    ]
    assert causes == ["clock", "clock"]
    ends = [
        {"messages": [{"role": "system", "content": text}, {"role": "user", "content": f"It is {clock}. Where?"}]}
        for clock in ("10:32:07", "10:32:41")
    ]
    assert explain(ends[0], ends[1], tokenizers.labbook("tiny")).cause == NONE


def test_a_template_that_drops_old_reasoning_is_told_at_the_reasoning(tokenizers) -> None:
    template = (
        "{% for m in messages %}<|turn|>{{ m.role }}\n"
        "{% if m.reasoning_content and loop.index0 >= messages|length - 2 %}"
        "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|end|>\n{% endfor %}"
    )
    turns = [
        {"role": "user", "content": "Where do dogs stay?"},
        {"role": "assistant", "content": "At the gate.", "reasoning_content": "The handbook speaks of a gate."},
        {"role": "tool", "content": "gate: open"},
    ]
    more = [{"role": "assistant", "content": "It is open."}, {"role": "user", "content": "Why?"}]
    explanation = explain({"messages": turns}, {"messages": [*turns, *more]}, tokenizers.labbook("tiny", template))
    assert explanation.cause == "template_history"
    assert "<think>" in explanation.a.after and "gate" in explanation.b.after


def test_where_the_template_sorts_keys_their_order_in_the_body_is_no_cause(tokenizers) -> None:
    (pair,) = (pair for pair in pairs("causes") if pair["cause"] == "key_order")
    a, b = copy.deepcopy(pair["a"]), copy.deepcopy(pair["b"])
    assert explain(a, b, _Sorting(tokenizers.engine("tiny"))).position is None
    b["tools"][2]["function"]["description"] = "Another description."
    explanation = explain(a, b, _Sorting(tokenizers.engine("tiny")))
    assert (explanation.cause, explanation.field) == (UNKNOWN, "tools[2].function.description")


class _Sorting:
    """The template of a server that writes keys in sorted order."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.encode, self.decode = tokenizer.encode, tokenizer.decode

    def render_chat(self, messages: Any, tools: Any = None, *more: Any, **named: Any) -> str:
        return "".join(json.dumps(tool, sort_keys=True) for tool in tools) + str(messages[0]["content"])


def test_a_text_that_grows_within_a_word_is_a_seam_and_within_blanks_is_none(tokenizers) -> None:
    text = "The lighthouse keeper writes one page a day. The keep"
    renderer = tokenizers.labbook("tiny")
    seam = explain({"prompt": text}, {"prompt": text + "er looks for the page."}, renderer)
    assert (seam.cause, seam.confidence) == ("retokenized_seam", "possible")
    assert seam.a.token_text + seam.a.after != seam.b.token_text and seam.position < seam.a.prompt_tokens
    assert explain({"prompt": text + "er"}, {"prompt": text + "er looks for the page."}, renderer).cause == NONE


def test_a_doubled_beginning_of_sequence_is_seen(tokenizers) -> None:
    ids = tokenizers.engine("tiny").encode("<|turn|>user\nWhere do dogs stay?<|end|>\n")
    explanation = explain({"prompt": ids}, {"prompt": [ids[0], *ids]}, tokenizers.labbook("tiny"))
    assert explanation.position == 1 and "doubled beginning-of-sequence" in explanation.why


@pytest.mark.parametrize(
    ("shared", "said", "reusable"),
    [
        (0, "no shared prefix", 0),
        (15, "shared prefix of 15 is below one page of 16", 0),
        (16, "shared prefix of 16 tokens holds 1 page of 16", 16),
        (31, "shared prefix of 31 tokens holds 1 page of 16", 16),
        (32, "shared prefix of 32 tokens holds 2 pages of 16", 32),
        (239, "shared prefix of 239 tokens holds 14 pages of 16", 224),
    ],
)
def test_a_prefix_below_one_page_is_not_called_no_prefix(shared, said, reusable) -> None:
    prefix = list(range(1000, 1000 + shared))
    explanation = explain_ids([*prefix, 1, 2, 3], [*prefix, 4, 5, 6])
    assert (explanation.sharing, explanation.reusable_tokens) == (said, reusable)
    assert (explanation.position, explanation.cause) == (shared, NONE)


def test_equal_prompts_reuse_all_pages_but_the_one_of_the_last_token() -> None:
    explanation = explain_ids(list(range(32)), list(range(32)))
    assert (explanation.position, explanation.shared_tokens, explanation.reusable_tokens) == (None, 32, 16)


def test_lost_and_won_tokens_of_a_drawn_case() -> None:
    """Pages of 4: [a b | x | 12 equal] against [a b | y | 12 equal]: nothing is reused, 12 tokens could be."""
    tail = list(range(100, 112))
    explanation = explain_ids([1, 2, 7, *tail], [1, 2, 8, *tail], page_tokens=4)
    assert (explanation.reusable_tokens, explanation.lost_tokens, explanation.gain_tokens) == (0, 12, 12)


def test_another_salt_or_model_is_noted_even_when_the_prompts_are_equal() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}
    explanation = explain({**body, "cache_salt": "one"}, {**body, "model": "n", "cache_salt": "two"})
    assert [note.split()[0] for note in explanation.notes] == ["cache_salt", "model"]


@pytest.mark.parametrize("group", ["clean", "unknown"])
def test_lint_warns_about_no_clean_body(group) -> None:
    for pair in pairs(group):
        if pair["name"] != "typographic quotes":
            for side in "ab":
                assert [one for one in lint(pair[side]) if one.level == "warning"] == [], pair["name"]


@pytest.mark.parametrize(
    "cause", ["clock", "date", "uuid", "counter", "line_endings", "unicode_form", "user_before_corpus"]
)
def test_lint_warns_before_anything_is_sent(cause, tokenizers) -> None:
    (pair,) = (pair for pair in pairs("causes") if pair["cause"] == cause)
    (finding,) = (one for one in lint(pair["b"], tokenizers.labbook("tiny")) if one.level == "warning")
    assert (finding.cause, finding.field) == (cause, pair["field"])
    rendered = tokenizers.labbook("tiny").render(_body(pair["b"]))
    assert rendered.start(finding.position) <= rendered.text.index(finding.text) < rendered.start(finding.position + 1)


def test_lint_only_hints_at_unsorted_keys_and_blanks_in_lines() -> None:
    by_cause = {pair["cause"]: pair for pair in pairs("causes")}
    (keys,) = lint(by_cause["key_order"]["a"])
    assert (keys.level, keys.field) == ("hint", "tools[0].function.parameters.properties")
    (blanks,) = lint(by_cause["whitespace"]["b"])
    assert (blanks.level, blanks.cause) == ("hint", "whitespace")


def test_lint_warns_of_blanks_at_the_end_and_of_what_nobody_sees() -> None:
    found = lint({"prompt": "\ufeffWhere do dogs stay?\nA: "})
    assert [(one.cause, one.position) for one in found] == [("whitespace", 0), ("whitespace", 9)]


def test_a_series_explains_each_body_against_its_best_match(tokenizers) -> None:
    clock, clean = pairs("causes")[0], pairs("clean")[1]
    series = Series(tokenizers.labbook("tiny"))
    bodies = [clean["a"], clock["a"], clean["b"], clock["b"], {"prompt": "Something else altogether."}]
    entries = [series.add(body) for body in bodies]
    assert [(entry.against, entry.cause) for entry in entries] == [
        (None, None),
        (1, "unknown"),
        (1, "none"),
        (2, "clock"),
        (entries[4].against, None),
    ]
    assert entries[4].is_new
    rows = {row.cause: (row.count, row.lost_tokens) for row in summarize(entries)}
    assert rows["clock"] == (1, entries[3].explanation.lost_tokens)
    assert set(rows) == {"unknown", "none", "clock"}


def _body(value: dict[str, Any]) -> Any:
    from labbook.explain import Body

    return Body(value)
