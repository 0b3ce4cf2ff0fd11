"""What a package index shows: addresses and links, where the job that releases says where the repository is."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.installation import ROOT, build

pytestmark = pytest.mark.install

RELEASE_JOB = {
    "GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "someone/tagcall", "GITHUB_SHA": "5bdc652",
}  # fmt: skip
LINKS = re.compile(r"\]\(([^)]+)\)")


def metadata(wheel: Path) -> tuple[Message, Message]:
    """Of the source archive beside the wheel, and of the wheel that was made of it."""
    (sources,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        (name,) = (name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        member = archive.extractfile(name)
        assert member is not None
        of_sources = member.read().decode()
    with zipfile.ZipFile(wheel) as archive_of_wheel:
        (name,) = (name for name in archive_of_wheel.namelist() if name.endswith(".dist-info/METADATA"))
        of_wheel = archive_of_wheel.read(name).decode()
    return Parser().parsestr(of_sources), Parser().parsestr(of_wheel)


def test_a_release_job_makes_links_that_live_on_an_index(tmp_path: Path) -> None:
    for shown in metadata(build(tmp_path, **RELEASE_JOB)):
        addresses = shown.get_all("Project-URL") or []
        assert "Repository, https://github.example/someone/tagcall" in addresses
        assert "Changelog, https://github.example/someone/tagcall/blob/HEAD/docs/changelog.md" in addresses
        readme = str(shown.get_payload())
        assert "(https://github.example/someone/tagcall/blob/5bdc652/docs/how-a-turn-works.md)" in readme
        assert "(https://github.example/someone/tagcall/raw/5bdc652/docs/images/tool-loop.svg)" in readme
        assert [link for link in LINKS.findall(readme) if not re.match(r"https?://|#", link)] == []


def test_elsewhere_the_readme_stays_as_it_is(wheel: Path) -> None:
    for shown in metadata(wheel):
        assert shown.get_all("Project-URL") is None
        assert shown["Description-Content-Type"] == "text/markdown"
        assert shown["Metadata-Version"] == "2.4", "a newer one is refused by mirrors"
        assert str(shown.get_payload()).strip() == (ROOT / "README.md").read_text("utf-8").strip()
