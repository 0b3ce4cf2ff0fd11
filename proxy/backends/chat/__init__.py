"""A server that speaks OpenAI's Chat Completions API: it is given text and gives text.

kind             its rows in the table: an address, and the local servers whose address is known
servers          those servers: where they listen, how they are started and given more context
backend          the `TextBackend`: one request a turn, on connections that are kept alive
requests         pure: a prompt as the body of a request, in the manner that its server takes
grammar          pure: llama.cpp's grammar for text in which every call fits
stream           pure: the bytes of an answer to backend events
characters       pure: those that a server cut, put together again
thinking         pure: reasoning that stands in the text, in front of the answer
errors           pure: every failure and the client's answer to it
context_size     how many tokens a model reads, as its server tells
examination      what `doctor` finds out
"""
