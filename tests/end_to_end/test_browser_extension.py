"""A browser extension, as Obsidian's Web Clipper is one: Chromium gives it an origin of its own, made of its key.

The clipper's key is not public, so a test cannot have its origin. These extensions have keys that are made here.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.node_clients import installed_browser, installed_node, run_node
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import MODEL

# What an extension may do beside asking as any page does: nothing, or ask wherever it wants, as the clipper.
PERMISSIONS = {"without permissions": [], "with all permissions": ["<all_urls>"]}
OF_ANOTHER = "chrome-extension://" + "a" * 32

pytestmark = [
    pytest.mark.clients,
    pytest.mark.browser,
    pytest.mark.parametrize("permissions", PERMISSIONS.values(), ids=PERMISSIONS),
]


def make_extension(folder: Path, permissions: list[str]) -> str:
    """Writes an extension; returns the origin that Chromium gives it: its key's hash, in the letters from a to p."""
    public = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    key = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    manifest = {
        "manifest_version": 3,
        "name": "Clipper",
        "version": "1",
        "key": base64.b64encode(key).decode(),
        "host_permissions": permissions,
    }
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (folder / "page.html").write_text('<!doctype html><meta charset="utf-8"><title>Clipper</title>', "utf-8")
    letters = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
    return "chrome-extension://" + sha256(key).hexdigest()[:32].translate(letters)


async def ask(model: ScriptedModel, folder: Path, permissions: list[str], allowed: str | None) -> dict[str, Any]:
    """What an extension sees of a server that allows this origin; None: the extension's own."""
    origin = make_extension(folder / "extension", permissions)
    model.choose = lambda _: Reply([Message("It is about potatoes.")], chunk=4)
    async with tagcall_server(model, folder / "home", allow_origin=(allowed or origin,)) as url:
        given: dict[str, object] = {
            "browser": installed_browser(), "extension": str(folder / "extension"), "profile": str(folder / "profile"),
            "page": f"{origin}/page.html", "url": url, "model": MODEL,
        }  # fmt: skip
        [seen] = await run_node(installed_node(), "extension.mjs", given, folder)
    assert seen["origin"] == origin
    return dict(seen)


async def test_an_extension_whose_origin_is_allowed_reads_a_stream(
    model: ScriptedModel, tmp_path: Path, permissions: list[str]
) -> None:
    seen = await ask(model, tmp_path, permissions, allowed=None)
    assert seen["status"] == 200
    chunks = [json.loads(line[6:]) for line in seen["text"].splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert "".join(deltas) == "It is about potatoes."
    assert seen["text"].rstrip().endswith("data: [DONE]")


async def test_an_extension_with_another_id_starts_no_turn(
    model: ScriptedModel, tmp_path: Path, permissions: list[str]
) -> None:
    seen = await ask(model, tmp_path, permissions, allowed=OF_ANOTHER)
    assert ("Failed to fetch" in seen["error"]) if "error" in seen else seen["status"] == 403
    assert model.requests == []
