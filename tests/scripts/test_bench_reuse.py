"""The benchmark of publication and single flight: exact tokens on `tiny`, and the report again from its records."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from labbook.book import Labbook
from labbook.record import Record
from minivllm.config import CHOICES
from scripts.bench_reuse.policies import BASE, ROWS, Policy, policies_of
from scripts.bench_reuse.workloads import NAMES, QUICK, Sizes, all_workloads

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench-reuse.py"
MEASURED = ("burst", "document-burst", "distinct", "late-arrival", "churn")
PROMPT, TAIL = 100, 4  # tokens of a prompt in the quick sizes, and those behind its last whole page
FLIGHTS = [row.name for row in ROWS if row.single_flight != "off"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_reuse_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measured(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the labbook and the report of a quick run."""
    folder = tmp_path_factory.mktemp("bench")
    arguments = ["--quick", "--repeats", "2", "--workloads", *MEASURED, "--labbook", str(folder / "labbook.md")]
    assert script.main([*arguments, "--report", str(folder / "report")]) == 0
    return folder


@pytest.fixture(scope="module")
def records(measured: Path) -> list[Record]:
    return Labbook(measured / "labbook.md").records(strict=True)


def counts(records: list[Record], workload: str, policy: str, group: str, name: str) -> list[int]:
    """One count in every repeat."""
    (record,) = [r for r in records if (r["workload"], r["policy"]["name"]) == (workload, policy)]
    (measured,) = [entry for entry in record["groups"] if entry["group"] == group]
    return measured[name]


def test_there_is_one_record_for_each_workload_and_policy(records: list[Record]) -> None:
    pairs = [(record["workload"], record["policy"]["name"]) for record in records]
    assert len(set(pairs)) == len(pairs)
    assert {workload for workload, _ in pairs} == set(MEASURED)
    assert {policy for workload, policy in pairs if workload == "burst"} == {row.name for row in ROWS}
    assert {record["repeats"] for record in records} == {2}


def test_a_cold_burst_without_coordination_computes_every_prompt(records: list[Record]) -> None:
    for count in (2, 4, 8):
        assert counts(records, "burst", "off", f"cold, {count} at once", "computed") == [count * PROMPT] * 2


@pytest.mark.parametrize("policy", FLIGHTS)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_cold_burst_computes_the_prompt_once_under_every_flight(
    records: list[Record], policy: str, count: int
) -> None:
    once = PROMPT + (count - 1) * TAIL
    assert counts(records, "burst", policy, f"cold, {count} at once", "computed") == [once] * 2
    assert counts(records, "burst", policy, f"cold, {count} at once", "restored") == [count * PROMPT - once] * 2
    assert counts(records, "burst", policy, f"warm, {count} at once", "computed") == [count * TAIL] * 2


def test_a_document_burst_computes_the_document_once_under_page_only(records: list[Record]) -> None:
    document = PROMPT - QUICK.question
    assert counts(records, "document-burst", "page", "8 at once", "computed") == [document + 8 * QUICK.question] * 2
    for policy in ("off", "release on finish"):
        assert counts(records, "document-burst", policy, "8 at once", "computed") == [8 * PROMPT] * 2


def test_prompts_published_at_their_release_spare_the_ones_that_begin_after_them(records: list[Record]) -> None:
    """The first step computes two prompts and begins a third; the other five begin when those are published."""
    spared = [3 * PROMPT + 5 * TAIL] * 2
    assert counts(records, "document-burst", "release after prefill", "8 at once", "computed") == spared


def test_distinct_prompts_cost_nothing_more_under_page(records: list[Record]) -> None:
    (off, _), (page, _) = (counts(records, "distinct", policy, "8 at once", "steps") for policy in ("off", "page"))
    assert page <= 1.02 * off
    assert counts(records, "distinct", "page", "8 at once", "computed") == [8 * PROMPT] * 2


def test_a_late_request_restores_what_was_published_while_the_first_decodes(records: list[Record]) -> None:
    assert counts(records, "late-arrival", "off", "second", "computed") == [PROMPT] * 2
    for policy in ("off, incremental", "release after prefill", "page"):
        assert counts(records, "late-arrival", policy, "second", "computed") == [TAIL] * 2


def test_churn_evicts_under_every_eviction_policy_and_lru_restores_nothing(records: list[Record]) -> None:
    churn = [record for record in records if record["workload"] == "churn"]
    assert {record["policy"]["eviction"] for record in churn} == set(CHOICES["eviction"])
    assert all(min(group["evicted"]) > 0 for record in churn for group in record["groups"][1:])
    assert counts(records, "churn", "page", "cycle 2", "restored") == [0, 0]


def test_every_policy_gives_the_same_answers(records: list[Record]) -> None:
    for workload in MEASURED:
        of_workload = [record for record in records if record["workload"] == workload]
        for number in range(len(of_workload[0]["groups"])):
            digests = {digest for record in of_workload for digest in record["groups"][number]["answers_sha256"]}
            assert len(digests) == 1, (workload, of_workload[0]["groups"][number]["group"])


def test_the_same_report_is_made_from_the_records_alone(script: ModuleType, measured: Path) -> None:
    again = measured / "again"
    assert script.main(["--from", str(measured / "labbook.md"), "--report", str(again)]) == 0
    written = {path.name: path.read_bytes() for path in (measured / "report").iterdir()}
    assert {path.name: path.read_bytes() for path in again.iterdir()} == written
    assert written.keys() == {"report.md"} | {f"{name}{end}" for name in MEASURED for end in (".png", ".txt")}


def test_the_report_tells_scope_machine_command_and_what_it_does_not_show(
    measured: Path, records: list[Record]
) -> None:
    text = (measured / "report" / "report.md").read_text(encoding="utf-8")
    for part in ("Scope:", "| machine |", records[0]["command"], records[0]["rebuild"], "## What this does not show"):
        assert part in text
    assert str(measured) not in text
    assert "| cold, 8 at once | off | 800 | 800 | 0 |" in text
    assert "the same tokens under every policy" in text and "Cost of coordination" in text


def test_a_run_can_be_chosen_and_a_wrong_one_is_told(script: ModuleType, measured: Path, records, capsys) -> None:
    source = ["--from", str(measured / "labbook.md")]
    assert script.main([*source, "--run", records[0]["run"]]) == 0
    assert capsys.readouterr().out.startswith("# Publication and single flight")
    assert script.main([*source, "--run", "nope"]) == 1
    assert f"its runs are {records[0]['run']}" in capsys.readouterr().err
    assert script.main(["--from", str(measured / "absent.md")]) == 1


@pytest.mark.parametrize(
    "arguments",
    [["--quick", "--repeats", "0"], ["--quick", "--labbook", "/nowhere/at/l.md"], ["--report", "/dev/null/x"]],
)
def test_what_cannot_be_done_is_told_before_anything_runs(script: ModuleType, arguments: list[str], capsys) -> None:
    assert script.main(arguments) != 0
    assert capsys.readouterr().err.startswith("bench-reuse: ")


def encode(text: str) -> list[int]:
    """A token for each character."""
    return [ord(character) for character in text]


def test_every_workload_of_the_list_is_there_and_its_prompts_have_their_length() -> None:
    workloads = all_workloads(encode, Sizes())
    assert tuple(workload.name for workload in workloads) == NAMES
    for workload in workloads:
        lengths = {len(prompt) for case in workload.cases for act in case for prompt in act.prompts}
        assert lengths == {12 * 16 + 16 if workload.name == "churn" else 24 * 16 + 16}


def test_overlapping_prompts_share_exactly_their_share_and_distinct_ones_nothing() -> None:
    overlap, *_, distinct, _ = all_workloads(encode, Sizes())
    seed, *probes = (act.prompts[0] for act in overlap.cases[0])
    shared = [next(n for n, (a, b) in enumerate(zip(seed, probe, strict=True)) if a != b) for probe in probes]
    assert [number // 16 for number in shared] == [0, 6, 12, 18, 24]
    (act,) = distinct.cases[0]
    assert len({prompt[:4] for prompt in act.prompts}) == 8


def test_a_new_eviction_policy_gets_a_row_where_pages_have_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHOICES, "eviction", (BASE.eviction, "newest"))
    *_, distinct, churn = all_workloads(encode, Sizes())
    assert policies_of(churn)[-1] == Policy("page, newest", "page", "incremental", "newest")
    assert policies_of(distinct) == ROWS
