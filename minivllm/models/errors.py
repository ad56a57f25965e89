"""The one error that a model which cannot be used raises."""


class ModelError(ValueError):
    """A model cannot be found, fetched, read or run here; the text says why, and what to do."""


class ChatTemplateError(ValueError):
    """Messages or tools that the model's chat template does not take; the text says why."""
