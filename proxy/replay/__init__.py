"""A little app-server that plays recorded turns over the protocol of the real one.

    python -m proxy.replay FOLDER [--speed recorded|fast] [--chunk N]

It runs as a child process like `codex app-server`, so that the demo, CI and production walk the same
path. It needs no login and no network.

fixture   the format: a folder for each turn, read and checked (pure)
asks      which fixture answers what the client asks (pure)
playback  a recorded turn under fresh ids, its deltas cut anew (pure)
server    requests in, answers and notifications out
samples   where the fixtures and the vault of the demo are
"""
