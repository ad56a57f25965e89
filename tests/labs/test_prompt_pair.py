from __future__ import annotations

from html.parser import HTMLParser

import pytest

from labs.kit.arrangements import ARRANGEMENTS
from labs.kit.ferry_desk import two_asks
from labs.kit.prompt_choice import OWN_TEXTS, PromptChoice
from labs.kit.prompt_pair import PromptPair, compare, shown
from labs.kit.prompt_pair_html import pair_html
from labs.kit.prompt_pair_view import PromptPairBox, prompt_pair_view
from labs.kit.session import Session

# Words, so that a state can be drawn: pages of 4 words, "keeper" is the 20th of them.
PAGE = 4


def pair(first: str, second: str) -> PromptPair:
    return compare({"prompt": first}, {"prompt": second}, None, page_tokens=PAGE, title="words")


def marks(one: PromptPair) -> list[str]:
    return [
        "".join({"shared": "=", "parting": "#", "lost": "-", "other": "."}[chip.mark] for chip in side)
        for side in (one.first, one.second)
    ]


@pytest.fixture
def choice(session: Session) -> PromptChoice:
    return PromptChoice(ARRANGEMENTS, two_asks("357935", 3), None, session)


def test_tokens_are_shared_up_to_the_first_difference_and_lost_behind_it() -> None:
    tail = "one two three four five six seven eight nine"
    found = pair(f"Time 09:41:07 now {tail}", f"Time 10:26:53 now {tail}")
    assert marks(found)[0].startswith("==#") or marks(found)[0].startswith("=#")
    assert marks(found)[1].endswith("-" * 9)
    assert found.num_restored_pages == 0


def test_a_page_is_restored_when_all_of_it_is_shared_and_a_token_is_left_to_compute() -> None:
    assert pair("a b c d e f", "a b c d e g").num_restored_pages == 1
    assert pair("a b c x", "a b c d e g").num_restored_pages == 0
    same = pair("a b c d", "a b c d")
    assert (same.num_restored_pages, marks(same)) == (0, ["====", "===="])
    assert "The last token is computed all the same" in same.reason


def test_the_text_twin_says_the_same_as_the_marks() -> None:
    text = pair("a b c d e f", "a b c d e g h").as_text()
    assert text.splitlines() == [
        "words: 4 of 7 words can be restored, 1 of 2 pages.",
        "They part at word 5, ·f against ·g. Nothing wrong: the prompts end differently, and little that is equal "
        "follows.",
        "  pages 0 to 1    first  |====|=#  |",
        "                  second |====|=#. |",
        "  = shared from the start, # here they part, - equal again, but lost, . different; | page border",
    ]


def test_nothing_invisible_stays_invisible() -> None:
    assert [shown(" a"), shown("\n"), shown("\u200b"), shown("")] == ["·a", "⏎", "<ZERO WIDTH SPACE>", "the end"]


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows, self.chips, self.said = 0, 0, ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.rows += tag == "tr"
        self.chips += "lkp-chip" in (dict(attrs).get("class") or "") and dict(attrs).get("aria-hidden") is None
        if tag not in ("br",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def test_the_picture_is_a_table_with_every_token_once_it_is_unfolded() -> None:
    found = pair("<b> " + "w " * 30, "<b> " + "w " * 31)
    tags = _Tags(pair_html(found, every_page=True))
    assert tags.open == [] and tags.rows == 1 + found.num_pages
    assert tags.chips == len(found.first) + len(found.second)
    assert "First request" in tags.said and "page 0" not in tags.said.lower().partition("the same as text")[0]


def test_pages_that_say_nothing_new_are_folded_and_counted() -> None:
    found = pair("w " * 40 + "x", "w " * 40 + "y")
    folded, whole = (_Tags(pair_html(found, every_page=each)) for each in (False, True))
    assert folded.rows < whole.rows
    assert "pages more, " in folded.said and "pages more, " not in whole.said


def test_a_choice_is_noted_with_its_counts(choice: PromptChoice, session: Session) -> None:
    found = choice.look("a clock on top", "before")
    (record,) = session.book.records(strict=True)
    assert (record["experiment"], record["label"], record["cause"]) == (
        "prompt-pair",
        "a clock on top, before",
        "clock",
    )
    assert record["lost_tokens"] == found.explanation.lost_tokens > 0
    assert choice.look("a clock on top", "after").counts["lost_tokens"] == 0


def test_names_and_sides_that_are_none_are_refused_and_not_noted(choice: PromptChoice, session: Session) -> None:
    with pytest.raises(ValueError, match="choose one of a clock on top"):
        choice.look("a colour", "before")
    with pytest.raises(ValueError, match="choose one of before, after"):
        choice.look("a clock on top", "middle")
    assert session.records == []


def test_the_controls_do_what_the_model_does(
    choice: PromptChoice, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    box = prompt_pair_view(choice, "a clock on top")
    assert isinstance(box, PromptPairBox) and repr(box).startswith("(two prompts")
    assert capsys.readouterr().out == box.pair.as_text() + "\n"
    before = box.picture
    box.version.value = "after"
    assert box.pair.title == "a clock on top, after" and box.picture != before
    box.prompt.value = "re-ranked passages"
    assert box.pair.title == "re-ranked passages, after"
    assert [record["label"] for record in session.records] == [
        "a clock on top, before", "a clock on top, after", "re-ranked passages, after",
    ]  # fmt: skip


def test_own_texts_can_be_edited_and_every_page_be_shown(choice: PromptChoice, session: Session) -> None:
    box = prompt_pair_view(choice, OWN_TEXTS)
    assert box.version.disabled and box.pair.explanation.cause == "clock"
    box.texts[1].value = box.texts[0].value
    assert box.pair.explanation.position is None
    noted, folded = len(session.records), box.picture
    box.prompt.value = "a stray blank"
    box.every_page.value = True
    assert len(session.records) == noted + 1 and len(box.picture) > len(folded)
    assert not box.version.disabled
