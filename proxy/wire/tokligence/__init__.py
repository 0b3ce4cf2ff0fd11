"""The dialect of tokligence-gateway.

request             its requests -> those of the Responses API
loop_guard          identical results in a row
tokligence_builder  turn events -> its events
"""
