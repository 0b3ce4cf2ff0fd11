"""Ports for servers that are told theirs: one that is started again, or that another one's configuration names.

So are those at which nobody listens.
"""

from __future__ import annotations

import secrets
import socket

# Below those that a system gives away by itself, to a server on port 0 or to a client: none of them takes one that is
# free for a moment. So are those of a Redis in cluster mode for its neighbours, which are 10,000 above its own.
_PORTS = range(10_000, 22_000)
# A port is claimed by the UDP port so far above it. Its own may be wanted: Caddy serves HTTP/3 there.
_CLAIM = len(_PORTS)


def free_port() -> int:
    """Nobody else is told the same as long as this process runs."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as attempt, socket.socket(type=socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(("127.0.0.1", port + _CLAIM))
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            claim.detach()  # it stays bound
        return port
