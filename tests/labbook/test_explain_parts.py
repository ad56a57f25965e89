"""The parts of `explain`: runs of equal tokens, places in JSON, fields in a rendered text, orders and forms."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labbook.errors import UsageError
from labbook.explain import explain, explain_ids
from labbook.explain.arithmetic import MIN_RUN_TOKENS, equal_runs, reusable
from labbook.explain.body import Body
from labbook.explain.json_place import first_difference, path_at
from labbook.explain.regions import regions
from labbook.explain.words import WordRenderer
from labbook.sequences import shared_length

# Time is not what these tests are about, and a busy machine must not fail them.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60, derandomize=True)
TOKENS = st.lists(st.integers(0, 3), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab {}[]",:\\é', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("kq", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXT = "The keeper closes the gallery, fills the second oil tank and writes the height of the water into the log."


@UNHURRIED
@given(TOKENS, TOKENS)
def test_the_shared_length_is_what_counting_one_by_one_gives(a, b) -> None:
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    assert shared_length(a, b) == count


@UNHURRIED
@given(TOKENS, TOKENS)
def test_equal_runs_are_equal_and_count_no_token_twice(a, b) -> None:
    start = shared_length(a, b)
    runs = equal_runs(a, b, start)
    for run in runs:
        assert run.length >= MIN_RUN_TOKENS and min(run.a, run.b) >= start
        assert a[run.a : run.a + run.length] == b[run.b : run.b + run.length]
    for places in (
        [run.a + at for run in runs for at in range(run.length)],
        [r.b + at for r in runs for at in range(r.length)],
    ):
        assert max(Counter(places).values(), default=0) <= 1


@UNHURRIED
@given(TOKENS, st.integers(1, 5))
def test_a_prompt_never_reuses_its_last_token(tokens, page_tokens) -> None:
    spared = reusable(len(tokens), len(tokens), page_tokens)
    assert spared % page_tokens == 0 and spared <= max(0, len(tokens) - 1)


def test_two_blocks_that_changed_places_are_both_lost() -> None:
    one, other = list(range(10, 20)), list(range(20, 32))
    runs = equal_runs([0, *one, *other], [0, *other, *one], 1)
    assert [(run.a, run.b, run.length) for run in runs] == [(11, 1, 12), (1, 13, 10)]


@UNHURRIED
@given(JSON)
def test_the_path_at_every_offset_leads_to_what_is_written_there(value) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for offset in range(len(text)):
        path = path_at(text, 0, offset)
        found = value
        for step in _steps(path):
            found = found[step]
        assert json.dumps(found, ensure_ascii=False) in text


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in path.replace("[", ".#").replace("]", "").split(".")[1:]:
        steps.append(int(part[1:]) if part.startswith("#") else part)
    return steps


@UNHURRIED
@given(JSON, JSON)
def test_no_difference_is_found_exactly_where_both_are_written_alike(a, b) -> None:
    assert (first_difference(a, b) is None) == (json.dumps(a) == json.dumps(b))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, ("key_order", "")),
        ([{"p": {"x": 1, "y": 2}}], [{"p": {"y": 2, "x": 1}}], ("key_order", "[0].p")),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, ("list_order", ".enum")),
        ({"x": 1, "y": 2}, {"x": 1, "z": 2}, ("members", "")),
        ({"x": [1, {"y": 2}]}, {"x": [1, {"y": 3}]}, ("value", ".x[1].y")),
        ([1, 2], [1, 2, 3], ("members", "")),
    ],
)
def test_a_difference_of_order_is_told_from_one_of_content(a, b, expected) -> None:
    found = first_difference(a, b)
    assert found is not None and (found.kind, found.path) == expected


def test_short_texts_are_found_behind_their_role_and_not_within_it() -> None:
    body = Body({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "e"}]})
    rendered = WordRenderer().render(body)
    assert rendered.text == "<system>\ns\n<user>\ne\n"
    assert [(region.start, region.path) for region in regions(rendered).listed] == [
        (9, "messages[0].content"),
        (18, "messages[1].content"),
    ]


def test_every_place_of_a_conversation_has_a_name() -> None:
    tool = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
    call = {"id": "c", "type": "function", "function": {"name": "read_log", "arguments": '{"first": 1}'}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Read."}, {"type": "text", "text": "Please."}]},
        {"role": "assistant", "content": None, "reasoning_content": "A log.", "tool_calls": [call]},
        {"role": "tool", "content": "empty"},
    ]
    rendered = WordRenderer().render(Body({"messages": messages, "tools": [tool]}))
    known = regions(rendered)
    assert [region.path for region in known.listed] == [
        "tools[0]",
        "messages[0].content[0].text",
        "messages[0].content[1].text",
        "messages[1].reasoning_content",
        "messages[1].tool_calls[0].function.name",
        "messages[1].tool_calls[0].function.arguments",
        "messages[2].content",
    ]
    at = rendered.text.index('"object"')
    assert known.listed[0].field_at(rendered, at) == "tools[0].function.parameters.type"
    assert known.between(0) == "template text before tools[0]"


def chat(system: str, user: object = "Where do dogs stay?") -> dict:
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        ("Be  kind.", "Be kind.", "whitespace"),
        ("Be\u00a0kind.", "Be kind.", "whitespace"),
        ("Rules:\n\t- be kind", "Rules:\n    - be kind", "whitespace"),
        ("a\r\nb", "a\nb", "line_endings"),
        ("a\rb", "a\nb", "line_endings"),
        ("Caf\u00e9 rules", "Cafe\u0301 rules", "unicode_form"),
        ("\ufb01ne rules", "fine rules", "unicode_form"),
        ("re\u200bady", "ready", "unknown"),
        ("everyday rules", "every-day rules", "unknown"),
        ("Regions: EU, US, APAC.", "Regions: US, APAC, EU.", "list_order"),
        ("Skills: {'search', 'sum', 'plot'}", "Skills: {'plot', 'search', 'sum'}", "list_order"),
        ("- alpha\n- beta\n- gamma", "- gamma\n- alpha\n- beta", "list_order"),
        ('Schema: {"enum": ["a", "b"]}', 'Schema: {"enum": ["b", "a"]}', "list_order"),
        ('Schema: {"type": "object", "title": "x"}', 'Schema: {"title": "x", "type": "object"}', "key_order"),
        ('Schema: {"type": "object", "title": "x"}', 'Schema: {"type": "array", "title": "x"}', "unknown"),
        ("Regions: EU, US, APAC.", "Regions: EU, UK, APAC.", "unknown"),
        ("The cat saw the dog, and ran.", "The dog saw the cat, and ran.", "unknown"),
        ("You are helping Alice Moreau.", "You are helping Bernd Okafor.", "user_before_corpus"),
        ("Signed in as alice@example.org", "Signed in as bernd@example.org", "user_before_corpus"),
        ("Der Nutzer heißt Alice.", "Der Nutzer heißt Bernd.", "user_before_corpus"),
        ("I am Tom and I run a bakery.", "I am Ana and I sing.", "user_before_corpus"),
        ("Name: Tom Berg", "Name: Ana Lind", "user_before_corpus"),
        ("User: How do I climb?", "User: Where is the gate?", "unknown"),
        ("I am happy to help.", "I am glad to help.", "unknown"),
        ("You are helping customers.", "You are helping engineers.", "unknown"),
        ("The user speaks.", "The user writes.", "unknown"),
        ("Assistant name: Nova", "Assistant name: Juno", "unknown"),
    ],
)
def test_a_cause_is_named_only_where_both_sides_show_it(one, other, cause) -> None:
    behind = f"\n\n{TEXT} {TEXT.upper()}"
    assert explain(chat(one + behind), chat(other + behind)).cause == cause


PASSAGES = (
    "Returns are accepted within thirty days when the seal of the box is unbroken.",
    "Parcels to the islands leave on Tuesdays by ferry, and arrive two days later.",
    "The warranty covers the motor and the switch, but neither the belt nor salt water.",
    "For repairs, open a ticket with the serial number and a photograph of the damage.",
)


@pytest.mark.parametrize(
    "form",
    ["[{n}] {text}", "Document {n}: {text}", "### Passage {n}\n{text}", '<document index="{n}">\n{text}\n</document>'],
)
def test_passages_that_were_ranked_anew_are_known_in_every_numbering(form) -> None:
    def asked(order: tuple[int, ...], question: str) -> dict:
        texts = [form.format(n=n, text=PASSAGES[at]) for n, at in enumerate(order, 1)]
        return chat("Answer from the context.", "Context:\n\n" + "\n\n".join(texts) + f"\n\nQuestion: {question}")

    assert explain(asked((0, 1, 2, 3), "Is it covered?"), asked((2, 0, 1, 3), "Who pays?")).cause == "reranked_passages"
    replaced = explain(asked((0, 1, 2), "Is it covered?"), asked((3, 1, 2), "Is it covered?"))
    assert replaced.cause == "unknown"


def test_passages_in_parts_of_their_own_are_known_too() -> None:
    def asked(order: tuple[int, ...]) -> dict:
        return chat(
            "Answer.", [*({"type": "text", "text": PASSAGES[at]} for at in order), {"type": "text", "text": "Who?"}]
        )

    explanation = explain(asked((0, 1, 2)), asked((1, 0, 2)))
    assert (explanation.cause, explanation.field) == ("reranked_passages", "messages[1].content")


def test_a_question_before_the_document_is_told_and_a_line_of_the_document_is_not() -> None:
    document = "\n".join(PASSAGES)
    first = [chat("Answer.", f"{question}\n\n{document}") for question in ("Is the belt covered?", "Who pays?")]
    assert explain(*first).cause == "user_before_corpus"
    faq = [
        chat(f"{document}\n\nQ: {question}\n\n{TEXT}", "Where?") for question in ("Is it covered?", "Was it covered?")
    ]
    assert explain(*faq).cause == "unknown"


def test_a_list_in_the_question_at_the_end_is_a_question() -> None:
    asked = [
        chat(f"Be brief. {TEXT}", f"Which is larger: {numbers}?")
        for numbers in ("three, four or five", "four, three or five")
    ]
    assert explain(*asked).cause == "none"


def test_a_wish_before_the_document_is_told_and_one_other_word_in_it_is_not() -> None:
    document = "\n\n" + "\n".join(PASSAGES)
    wishes = [
        chat("Answer.", wish + document) for wish in ("Summarize it in one line.", "List every rule about ferries.")
    ]
    assert explain(*wishes).cause == "user_before_corpus"
    words = [
        chat("Answer.", f"Translate the following text to {language}:{document}") for language in ("Danish", "Latin")
    ]
    assert explain(*words).cause == "unknown"


def test_documents_beside_the_messages_are_passages() -> None:
    documents = [{"text": passage} for passage in PASSAGES]
    a, b = ({**chat("Answer."), "documents": listed} for listed in (documents, documents[::-1]))
    assert (explain(a, b).cause, explain(a, b).field) == ("reranked_passages", "documents")


def test_ids_against_text_need_a_tokenizer() -> None:
    with pytest.raises(UsageError, match="--tokenizer or --base-url"):
        explain({"prompt": [1, 2, 3]}, {"prompt": "Where do dogs stay?"})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "a request body is a JSON object, not list"),
        ({}, "needs `messages`, or one `prompt`"),
        ({"messages": []}, "a list of at least one object"),
        ({"messages": ["hi"]}, "a list of at least one object"),
        ({"prompt": ["a", "b"]}, "one `prompt`"),
        ({"prompt": [1, "a"]}, "one `prompt`"),
    ],
)
def test_what_is_no_body_is_refused_with_what_would_be_one(value, said) -> None:
    with pytest.raises(UsageError, match=f"the second body: .*{said}"):
        explain({"prompt": "x"}, value)


def test_a_batch_of_one_prompt_is_that_prompt() -> None:
    assert explain({"prompt": ["Where?"]}, {"prompt": "Where?"}).position is None
    assert explain_ids([1, 2], [1, 3]).position == explain({"prompt": [[1, 2]]}, {"prompt": [1, 3]}).position == 1


def test_odd_bodies_are_explained_without_a_crash() -> None:
    odd = [
        {"messages": [{}]},
        {"messages": [{"role": None, "content": 7, "tool_calls": {"x": 1}}], "tools": {"a": 1}},
        {"messages": [{"role": "user", "content": [None, {"type": "image_url"}, {"text": 3}]}], "tools": [None, 1]},
        {"messages": [{"role": "user", "content": "\ud800 half"}]},
        {"prompt": ""},
    ]
    for a in odd:
        for b in odd:
            explanation = explain(a, b)
            assert (explanation.position is None) == (explanation.a.token == explanation.b.token)
