"""The measuring instrument and the lab notebook it writes: any OpenAI-compatible server, no MLX needed.

`labbook.measure.measure` runs one cold and warm pair and returns a record; `labbook.book.Labbook` keeps records.
Importing this package imports nothing else: an instrument should start fast.
"""

__version__ = "0.1.0"
