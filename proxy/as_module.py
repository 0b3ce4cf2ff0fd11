"""`python -m tagcall` of an installation whose scripts are not on PATH: a wheel has this as `tagcall/__main__.py`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.exit(import_module("tagcall").run())
