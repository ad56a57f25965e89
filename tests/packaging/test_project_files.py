"""pyproject.toml, constraints.txt, environment.yml, the Makefile, CI and the README say the same thing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

# Neither is installed beside `engine`: one is a part of it, the other stands in its place.
NOT_BESIDE_ENGINE = {"engine-common", "cuda"}
# 60 MB for one example, which says how to install it; and what only make test-browser needs.
ON_DEMAND = {"router", "browser"}
PLATFORMS = [
    {
        "sys_platform": sys_platform,
        "platform_machine": machine,
        "python_full_version": python,
        "python_version": python[:4],
    }
    for sys_platform, machine in [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]
    for python in ["3.11.9", "3.12.1", "3.13.0", "3.14.0"]
]


def targets(root: Path) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def requirements(project: dict[str, Any]) -> list[Requirement]:
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines if not line.startswith(project["name"])]


def constraints(root: Path) -> list[Requirement]:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.lstrip().startswith("#")]


def applies(requirement: Requirement, platform: dict[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(platform)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: "-".join(platform.values()))
def test_every_dependency_has_one_constraint_that_satisfies_it(
    root: Path, project: dict[str, Any], platform: dict[str, str]
) -> None:
    pinned = {canonicalize_name(pin.name): pin.specifier for pin in constraints(root) if applies(pin, platform)}
    for requirement in requirements(project):
        if not applies(requirement, platform):
            continue
        (pin,) = pinned[canonicalize_name(requirement.name)]
        assert pin.operator == "==" and requirement.specifier.contains(pin.version), f"{requirement} but {pin}"


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: "-".join(platform.values()))
def test_no_package_is_constrained_to_two_versions(root: Path, platform: dict[str, str]) -> None:
    names = [canonicalize_name(pin.name) for pin in constraints(root) if applies(pin, platform)]
    assert len(names) == len(set(names))


def test_a_constraint_names_no_extra_because_pip_would_refuse_it(root: Path) -> None:
    assert [str(pin) for pin in constraints(root) if pin.extras or pin.url] == []


def test_the_base_needs_neither_mlx_nor_matplotlib(project: dict[str, Any]) -> None:
    names = {Requirement(line).name for line in project["dependencies"]}
    assert names == {"prometheus-client", "requests", "tqdm"}


def test_the_cpu_and_the_cuda_build_of_mlx_are_in_extras_of_their_own(project: dict[str, Any]) -> None:
    """They install the same libmlx.so, and `mlx` alone imports nothing on Linux."""
    extras = project["optional-dependencies"]
    on_linux = [
        (extra, sorted(requirement.extras))
        for extra, lines in extras.items()
        for requirement in map(Requirement, lines)
        if requirement.name == "mlx" and applies(requirement, PLATFORMS[0])
    ]
    assert on_linux == [("engine", ["cpu"]), ("cuda", ["cuda"])]


def test_environment_yml_installs_the_extras_of_pyproject(root: Path, project: dict[str, Any]) -> None:
    environment = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    python, pip, from_pip = environment["dependencies"]
    assert environment["name"] == project["name"]
    assert python == f"python{project['requires-python']}" and pip == "pip"
    constraint, checkout = from_pip["pip"]
    assert constraint == "-c constraints.txt"
    named = re.fullmatch(r"-e \.\[(.*)\]", checkout)
    assert named is not None
    assert set(named[1].split(",")) == set(project["optional-dependencies"]) - NOT_BESIDE_ENGINE - ON_DEMAND


def test_make_installs_the_extras_of_pyproject(root: Path, project: dict[str, Any]) -> None:
    everything = re.search(
        r"^EVERYTHING = \$\(ENGINE\) (.*)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert everything is not None
    assert {"engine", *everything[1].split()} == set(project["optional-dependencies"]) - NOT_BESIDE_ENGINE - ON_DEMAND


def test_each_console_script_leads_to_a_function_that_exists(root: Path, project: dict[str, Any]) -> None:
    for script, target in project["scripts"].items():
        module, function = target.split(":")
        path = root / (module.replace(".", "/") + ".py")
        assert path.is_file(), f"{script} leads to {path}, which is not there"
        defined = [
            node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
        ]
        assert function in defined, f"{script} leads to {target}, which is not defined"


def test_each_package_says_that_it_is_typed(root: Path) -> None:
    assert [name for name in ("minivllm", "labbook", "labs") if not (root / name / "py.typed").is_file()] == []


def test_each_script_that_make_runs_exists(root: Path) -> None:
    named = re.findall(r"\bscripts/[\w.-]+", (root / "Makefile").read_text(encoding="utf-8"))
    assert "scripts/setup-environment.py" in named
    assert [script for script in named if not (root / script).is_file()] == []


def test_the_readme_documents_every_make_target_and_no_other(root: Path) -> None:
    documented = re.findall(r"^\| `make ([a-z-]+)` \|", (root / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(documented) == targets(root) - {"lint"}  # a part of check and test


def test_make_help_lists_every_target(root: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}  # not a MAKEFLAGS of the make that may be running this test
    listed = subprocess.run(
        ["make", "help"], cwd=root, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in listed.splitlines()} == targets(root) - {"lint"}


def test_the_commands_of_hosted_ci_exist(root: Path, project: dict[str, Any]) -> None:
    workflow = yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    made = {word for command in commands for word in re.findall(r"^make ([a-z-]+)", command, re.MULTILINE)}
    assert {"test", "measure"} <= made <= targets(root)
    programs = {command.split()[0] for command in commands}
    assert programs <= {"make", "python", *project["scripts"]}


def test_hosted_ci_covers_linux_apple_silicon_conda_and_the_instrument_alone(root: Path) -> None:
    jobs = yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert set(jobs) == {"linux", "macos", "conda", "instrument"}
    assert jobs["macos"]["runs-on"] == "macos-14"
    assert jobs["linux"]["strategy"]["matrix"]["python"] == ["3.11", "3.14"]


def test_the_devcontainer_sets_up_as_make_does_and_holds_no_secret(root: Path, project: dict[str, Any]) -> None:
    container = json.loads((root / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    python = re.fullmatch(r"mcr\.microsoft\.com/devcontainers/python:(3\.\d+)-bookworm", container["image"])
    assert python is not None and SpecifierSet(project["requires-python"]).contains(python[1])
    assert container["postCreateCommand"] == "make setup" and "setup" in targets(root)
    assert container["forwardPorts"] == [8888]  # of JupyterLab, unless it is told another
    assert set(container) == {
        *("name", "image", "postCreateCommand", "forwardPorts"),
        "portsAttributes",
        "customizations",
    }


@pytest.mark.parametrize(("target", "further"), [("notebooks", ""), ("notebooks-full", " --full")])
def test_notebooks_run_on_the_model_and_the_server_that_make_was_given(
    root: Path, tmp_path: Path, target: str, further: str
) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/sh\nprintf "%s|%s|%s" "$LAB_MODEL" "$LAB_BASE_URL" "$*"\n')
    stand_in.chmod(0o755)
    environment = {"PATH": os.environ["PATH"]}  # not a MAKEFLAGS of the make that may be running this test
    chosen = ["MODEL=tiny", "NOTEBOOKS=00 05", "BASE_URL=http://me:it's@host"]
    command = ["make", "--silent", target, *chosen, f"BIN={tmp_path}", "--assume-old=setup"]
    told = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout
    assert told == f"tiny|http://me:it's@host|scripts/run-notebooks.py 00 05{further}"


def test_the_ci_script_is_executable_bash_that_parses(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], capture_output=True).returncode == 0
    assert "run test ||" in script.read_text(encoding="utf-8")


def test_git_ignores_the_environment_and_the_learners_labbook(root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_bytes((root / ".gitignore").read_bytes())
    ours = [".venv/bin/python", "labbook.md", "minivllm/__pycache__/x.pyc"]
    tracked = ["labbook/book.py", "docs/labbook.md", "minivllm/cli.py"]
    ignored = subprocess.run(["git", "check-ignore", *ours, *tracked], cwd=tmp_path, capture_output=True, text=True)
    assert ignored.stdout.split() == ours
