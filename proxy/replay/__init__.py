"""A little app-server that plays recorded turns over the protocol of the real one.

    python -m proxy.replay FOLDER [--speed fast|recorded|20ms] [--chunk N]

It runs as a child process like `codex app-server`, so that the demo, CI and production walk the same
path. It needs no login and no network.

fixture          the format: a folder for each request, read and checked
conversation     what was said on a thread, read back from its messages (pure)
thread_log       what a thread holds: what was injected, asked and answered on it (pure)
asks             which recorded turn answers what the client asks (pure)
key_placeholder  the key of a turn's calls, which each installation has of its own (pure)
placeholders     what a recording has in place of what is nobody else's business (pure)
transcript       what was said, to be read and compared by people (pure)
playback         a recorded turn under fresh ids, its deltas cut anew (pure)
server           requests in, answers and notifications out
answers          what a client got, and the file that keeps it
normal           the form of an answer in which two runs are equal (pure)
difference       how two answers differ, for a person to read (pure)
"""
