"""Holds the pages of the Obsidian plugins against the plugins' sources: exit status 1 when one has moved on.

    make plugin-pages CHECKOUTS="chatgpt-md=~/src/chatgpt-md yolo=~/src/obsidian-yolo"

With ARGS=--update what was found becomes what the pages stand on; then read the pages, and their tests.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .plugins import PLUGINS
from .reading import drift, extract, keep, kept


def main() -> int:
    known = ", ".join(f"{name} ({plugin.repository})" for name, plugin in PLUGINS.items())
    parser = argparse.ArgumentParser(prog="make plugin-pages", description=__doc__, epilog=f"Known: {known}.")
    parser.add_argument("checkouts", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--update", action="store_true", help="keep what was found")
    options = parser.parse_args()
    drifted = False
    for checkout in options.checkouts:
        name, _, folder = checkout.partition("=")
        if name not in PLUGINS or not Path(folder).expanduser().is_dir():
            parser.error(f"{checkout}: write NAME=FOLDER, with the folder of a checkout. Known are {known}.")
        now, before = extract(PLUGINS[name], Path(folder).expanduser()), kept(name)
        lines = list(drift(before, now))
        drifted = drifted or bool(lines)
        print(f"{name}: {before['version']} -> {now['version']}, {len(lines) or 'no'} changes that the page shows")
        for line in lines:
            print(f"  {line}")
        if options.update:
            keep(name, now)
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
