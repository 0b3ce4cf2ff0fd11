"""The Realtime API, in text.

versions          how GA and the beta name things
request           what a session is set to, and the turn that answers it
items             the items of a conversation
realtime_builder  turn events -> Realtime events
"""
