"""Ollama's own API, for hosts that know nothing else. Pure. docs/howto/ollama-hosts.md.

request         a chat, or a prompt alone
messages        its messages; results find their calls without ids
ollama_builder  the lines of an answer, and the answer as one object
models          the list, one model, and those that are loaded: all of them
errors          errors, and how lines are written
"""
