"""`python -m proxy.cli` is `tagcall`."""

import sys

from .main import main

sys.exit(main())
