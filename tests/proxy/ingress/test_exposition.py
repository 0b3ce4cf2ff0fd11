"""The text for Prometheus is only loaded when somebody asks."""

from __future__ import annotations

import subprocess
import sys


def test_a_server_loads_prometheus_client_when_it_is_asked_for_its_numbers() -> None:
    said = "import sys; import proxy.server; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0
