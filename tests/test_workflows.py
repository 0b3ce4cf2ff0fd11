"""What GitHub runs is what a person can type: each job calls targets of the Makefile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
# A suite that is run by hand, or each night.
NOT_FOR_EACH_CHANGE = {"test-newest", "test-oldest"}


def calls(workflow: str) -> Iterator[str]:
    """The targets that the jobs of a workflow make, those of a matrix included."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text("utf-8"))["jobs"]
    for job in jobs.values():
        yield from job.get("strategy", {}).get("matrix", {}).get("target", ())
        for step in job["steps"]:
            for line in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
                yield from (
                    word for word in line.split() if "=" not in word and "$" not in word and word not in {"{{", "}}"}
                )


def test_every_target_that_a_job_makes_is_there() -> None:
    workflows = sorted(path.name for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    wanted = {target for workflow in workflows for target in calls(workflow)} - {"matrix.target"}
    assert wanted
    assert wanted <= TARGETS


def test_every_suite_has_its_job() -> None:
    suites = {target for target in TARGETS if target == "test" or target.startswith("test-")} | {"lint", "site"}
    assert suites - NOT_FOR_EACH_CHANGE <= set(calls("test.yml"))
