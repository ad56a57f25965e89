"""What keys and an index must do. Every check builds its own prompts, small enough to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from labs.kit.exercises.drawing import labelled, pages
from labs.kit.exercises.on_engine import random_walks
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all

MIN_KEY_BYTES = 16
PROMPTS = st.lists(st.lists(st.integers(1, 3), min_size=2, max_size=7), min_size=1, max_size=3)


def require_different(one: bytes, other: bytes, what: str, drawing: str) -> None:
    if one == other:
        raise Wrong(f"{what} have the same key", expected="two different keys", actual=one, drawing=drawing)


def key_examples(answer: Answer) -> None:
    root = answer.root_key(b"model", None)
    first = answer.page_key(root, [1, 2])
    for key in (root, first):
        if not isinstance(key, bytes):
            raise Wrong("a key is bytes", expected="bytes", actual=f"{type(key).__name__}: {key!r}")
    if answer.page_key(root, [1, 2]) != first:
        raise Wrong("the same page has two keys", expected=first, actual=answer.page_key(root, [1, 2]))
    require_different(first, answer.page_key(root, [2, 1]), "the pages 1 2 and 2 1", "")
    behind_12, behind_99 = (answer.page_key(answer.page_key(root, head), [3, 4]) for head in ([1, 2], [9, 9]))
    drawing = labelled([("prompt A", pages([1, 2, 3, 4], 2)), ("prompt B", pages([9, 9, 3, 4], 2))])
    require_different(behind_12, behind_99, "the second pages of two prompts that begin differently", drawing)


def keys_are_long_enough(answer: Answer) -> None:
    for name, key in (("root_key", answer.root_key(b"m", None)), ("page_key", answer.page_key(b"p" * 32, [1, 2]))):
        if len(key) < MIN_KEY_BYTES:
            raise Wrong(f"{name} gives {len(key)} bytes", expected=f"at least {MIN_KEY_BYTES} bytes", actual=key)


def keys_go_back_to_the_first_page(answer: Answer) -> None:
    def third_key(tokens: Sequence[int]) -> bytes:
        key = answer.root_key(b"model", None)
        for start in range(0, 6, 2):
            key = answer.page_key(key, tokens[start : start + 2])
        return bytes(key)

    @for_all(one=st.lists(st.integers(1, 2), min_size=6, max_size=6), place=st.integers(0, 5))
    def a_changed_token_changes_the_key(one: list[int], place: int) -> None:
        other = [*one[:place], 9, *one[place + 1 :]]
        drawing = labelled([("prompt A", pages(one, 2)), ("prompt B", pages(other, 2))])
        require_different(third_key(one), third_key(other), "the third pages of these two prompts", drawing)


def numbers_do_not_run_together(answer: Answer) -> None:
    pairs = (([1, 23], [12, 3]), ([300, 1], [44, 1]), ([0, 1], [1, 0]), ([65_536, 2], [0, 2]), ([2**31, 1], [0, 1]))
    for one, other in pairs:
        keys = [answer.page_key(b"p" * 32, tokens) for tokens in (one, other)]
        require_different(
            keys[0], keys[1], "two pages", labelled([("page A", pages(one, 2)), ("page B", pages(other, 2))])
        )


def order_matters(answer: Answer) -> None:
    @for_all(tokens=st.lists(st.integers(1, 4), min_size=2, max_size=4))
    def a_permutation_is_another_page(tokens: list[int]) -> None:
        other = tokens[::-1]
        if other != tokens:
            keys = [answer.page_key(b"p" * 32, order) for order in (tokens, other)]
            drawing = labelled([("page A", pages(tokens, 4)), ("page B", pages(other, 4))])
            require_different(keys[0], keys[1], "the same tokens in two orders", drawing)


def tenants_and_models_are_apart(answer: Answer) -> None:
    roots = [
        (b"model", None),
        (b"model", ""),
        (b"model", "None"),
        (b"model", "a"),
        (b"modela", None),
        (b"modela", ""),
        (b"", "model"),
    ]
    for number, one in enumerate(roots):
        for other in roots[:number]:
            drawing = labelled(
                [
                    ("root A", f"identity {one[0]!r}, salt {one[1]!r}"),
                    ("root B", f"identity {other[0]!r}, salt {other[1]!r}"),
                ]
            )
            require_different(answer.root_key(*one), answer.root_key(*other), "two different owners", drawing)
    for mark in ("\x00", "\x01", "|", ":", "/", ",", "0", "1", " "):
        one, other = (b"m", f"x{mark}y"), (f"m{mark}x".encode(), "y")
        told = [f"identity {identity!r}, salt {salt!r}" for identity, salt in (one, other)]
        drawing = labelled([("root A", told[0]), ("root B", told[1])])
        require_different(answer.root_key(*one), answer.root_key(*other), "two different owners", drawing)


def index_examples(answer: Answer) -> None:
    index = answer.MyPrefixIndex(page_size=2)
    require(index.insert([1, 2], None, 5, None), 5, "insert([1, 2], None, 5, None)")
    require(index.insert([3, 4], 5, 0, None), 0, "insert([3, 4], 5, 0, None)")
    require(index.lookup([1, 2, 3, 4, 8], 2, None), [5, 0], "lookup([1, 2, 3, 4, 8], 2, None)")
    require(index.lookup([9, 9, 3, 4, 8], 2, None), [], "lookup([9, 9, 3, 4, 8], 2, None)")


def require(actual: object, expected: object, call: str, drawing: str = "") -> None:
    if actual != expected:
        raise Wrong(f"{call} gives another answer", expected=expected, actual=actual, drawing=drawing)


def page_0_is_a_page(answer: Answer) -> None:
    index = answer.MyPrefixIndex(page_size=2)
    index.insert([1, 2], None, 0, None)
    index.insert([3, 4], 0, 1, None)
    drawing = labelled([("page 0", "[ 1 2 ], a first page"), ("page 1", "[ 3 4 ] behind page 0")])
    require(index.lookup([3, 4, 9], 1, None), [], "lookup([3, 4, 9], 1, None)", drawing)
    require(index.lookup([1, 2, 3, 4, 9], 2, None), [0, 1], "lookup([1, 2, 3, 4, 9], 2, None)", drawing)


def the_longest_prefix_is_found(answer: Answer) -> None:
    @for_all(prompts=PROMPTS, asked=st.lists(st.integers(1, 3), max_size=8), max_pages=st.integers(0, 4))
    def as_the_slow_one_says(prompts: list[list[int]], asked: list[int], max_pages: int) -> None:
        index, tokens_of = answer.MyPrefixIndex(page_size=2), {}
        for prompt in prompts:
            store(index, prompt, tokens_of)
        expected = min(max_pages, num_leading_pages(prompts, asked))
        before = sorted(index.page_ids())
        found = index.lookup(asked, max_pages, None)
        drawing = labelled(
            [
                *((f"prompt {number}, stored", pages(one, 2)) for number, one in enumerate(prompts, start=1)),
                ("asked", pages(asked, 2)),
            ]
        )
        if [tokens_of.get(page_id) for page_id in found] != [tuple(asked[: 2 * (n + 1)]) for n in range(expected)]:
            told = [f"page {page_id} of {list(tokens_of.get(page_id, ()))}" for page_id in found]
            raise Wrong(
                f"lookup({asked}, max_pages={max_pages}) finds other pages",
                drawing=drawing,
                expected=f"the first {expected} pages of what was asked" if expected else "no page",
                actual=", ".join(told) or "no page",
            )
        if sorted(index.page_ids()) != before:
            raise Wrong(
                "a lookup changes what is stored", expected=before, actual=sorted(index.page_ids()), drawing=drawing
            )


def store(index: Any, prompt: Sequence[int], tokens_of: dict[int, tuple[int, ...]], salt: str | None = None) -> None:
    """Insert every whole page of a prompt, as the engine does; `tokens_of` learns which prefix each page stands for."""
    parent: int | None = None
    for end in range(2, len(prompt) + 1, 2):
        offered = len(tokens_of)
        parent = index.insert(prompt[end - 2 : end], parent, offered, salt)
        if parent is None:
            return
        tokens_of.setdefault(parent, tuple(prompt[:end]))


def num_leading_pages(prompts: Sequence[Sequence[int]], asked: Sequence[int]) -> int:
    heads = {tuple(prompt[:end]) for prompt in prompts for end in range(2, len(prompt) + 1, 2)}
    return next((n for n in range(len(asked) // 2) if tuple(asked[: 2 * n + 2]) not in heads), len(asked) // 2)


def equal_content_is_stored_once(answer: Answer) -> None:
    index = answer.MyPrefixIndex(page_size=2)
    index.insert([1, 2], None, 0, None)
    drawing = labelled([("page 0", "[ 1 2 ]"), ("page 1", "[ 1 2 ], offered later")])
    require(index.insert([1, 2], None, 1, None), 0, "inserting the same content as page 1", drawing)
    require((len(index), 1 in index), (1, False), "(how many are stored, whether page 1 is)", drawing)
    require(index.lookup([1, 2, 3], 1, None), [0], "a lookup of 1 2", drawing)


def salts_never_meet(answer: Answer) -> None:
    index = answer.MyPrefixIndex(page_size=2)
    index.insert([1, 2], None, 0, "tenant a")
    for salt in ("tenant b", None, ""):
        found = index.lookup([1, 2, 3], 1, salt)
        drawing = labelled([("stored", "[ 1 2 ] with salt 'tenant a'"), ("asked", f"[ 1 2 ] with salt {salt!r}")])
        require(found, [], "a lookup under another salt", drawing)
    require(index.lookup([1, 2, 3], 1, "tenant a"), [0], "a lookup under the same salt")


def collisions_cost_no_wrong_answer(answer: Answer) -> None:
    def colliding(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
        return b"the same for everybody"

    index = answer.MyPrefixIndex(2, b"", colliding)
    index.insert([1, 2], None, 0, None)
    drawing = labelled([("stored", "page 0 [ 1 2 ]"), ("keys", "all equal, on purpose")])
    require(index.lookup([3, 4, 5], 1, None), [], "a lookup of 3 4", drawing)
    require(index.insert([3, 4], None, 1, None), None, "inserting 3 4 under a key that belongs to 1 2", drawing)
    require(index.lookup([1, 2, 1, 2, 9], 2, None), [0], "a lookup of 1 2 1 2: page 0 is no second page", drawing)
    require(index.lookup([1, 2, 9], 1, "a"), [], "a lookup of 1 2 under another salt", drawing)
    require((1 in index, len(index)), (False, 1), "(whether page 1 is stored, how many are)", drawing)


def removed_pages_are_gone(answer: Answer) -> None:
    index = answer.MyPrefixIndex(page_size=2)
    index.insert([1, 2], None, 0, None)
    index.insert([3, 4], 0, 1, None)
    index.remove(1)
    require(index.lookup([1, 2, 3, 4, 5], 2, None), [0], "a lookup after page 1 was removed")
    require(index.insert([3, 4], 0, 2, None), 2, "inserting 3 4 again, as page 2")
    require(index.lookup([1, 2, 3, 4, 5], 2, None), [0, 2], "a lookup after that")


def the_engine_runs_on_it(answer: Answer) -> None:
    random_walks(lambda: {"prefix_index": answer.MyPrefixIndex(2)}, seeds=range(60))


PARTS = (
    Part(
        ("root_key", "page_key"),
        (
            Check(
                "the README's examples",
                key_examples,
                "The key must depend on the parent's key and on the tokens in their order.",
            ),
            Check(
                "keys go back to the first page",
                keys_go_back_to_the_first_page,
                "The key covers a page's own tokens, or one parent, and not the whole way from the root.",
            ),
            Check(
                "numbers do not run together",
                numbers_do_not_run_together,
                "Numbers were joined without saying where one ends, or cut to fewer bytes than they need.",
            ),
            Check(
                "order matters",
                order_matters,
                "Something that forgets the order (a sum, a sorted list, a set) went into the key.",
            ),
            Check(
                "tenants and models are apart",
                tenants_and_models_are_apart,
                "Identity and salt were joined without a border, or None was treated as an empty salt.",
            ),
            Check(
                "keys are long enough",
                keys_are_long_enough,
                "Python's hash() or a shortened digest: short keys collide, by chance or because somebody wants it.",
            ),
        ),
        "Equal keys now mean equal prefixes. All else in a prefix cache may be slow; this may not be wrong.",
    ),
    Part(
        ("MyPrefixIndex",),
        (
            Check(
                "the README's examples",
                index_examples,
                "Make every page's key from the key of the page before it, starting with root_key.",
            ),
            Check(
                "page 0 is a page",
                page_0_is_a_page,
                "0 is a page and not 'no parent': compare with None.",
            ),
            Check(
                "the longest prefix is found",
                the_longest_prefix_is_found,
                "The walk goes on behind a gap, stops a page early or late, or counts a page that is not full.",
            ),
            Check(
                "equal content is stored once",
                equal_content_is_stored_once,
                "insert must look before it writes: two pages with equal content would be freed under each other.",
            ),
            Check("salts never meet", salts_never_meet, "The walk begins at a root without the salt."),
            Check(
                "collisions cost no wrong answer",
                collisions_cost_no_wrong_answer,
                "A key that is found was taken for a proof: compare tokens, parent and salt.",
            ),
            Check(
                "removed pages are gone",
                removed_pages_are_gone,
                "A dictionary besides those that remove() clears still knows the page.",
            ),
            Check(
                "the engine runs on it",
                the_engine_runs_on_it,
                "Something that the small examples did not show; the drawing is the state in which it appeared.",
            ),
        ),
        "This is vLLM's design in small: chained keys over whole pages. SGLang walks a tree of tokens instead.",
    ),
)
COMPONENTS = {"prefix_index": lambda answer, config: answer.MyPrefixIndex(config.page_size)}
