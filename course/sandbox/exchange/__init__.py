"""What travels between the check and a student's process.

channel       messages through a pipe: a length, then bytes
plain_data    the contents of a message: numbers, text, arrays and containers of these; no code
json_bounds   the size of a JSON text's values, found before it is decoded
asked         a function that an answer calls and the check computes
earlier_results   what an answer has returned before, which later calls leave as it is
"""
