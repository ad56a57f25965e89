"""HTTP: the OpenAI API, tokenization, metrics. A translation: the engine thread behind it does the work."""
