"""Only the model's name is compared."""

KILLED_BY = "another identity is refused"


def require_same(stored, here):
    if stored.get("model") != here.get("model"):
        raise SlotFileError(f"model is {stored.get('model')} in the file and {here.get('model')} here")
