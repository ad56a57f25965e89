"""Only the names that the file has are compared: a salt that is new here goes unnoticed."""

KILLED_BY = "another identity is refused"


def require_same(stored, here):
    for name in stored:
        if stored[name] != here.get(name):
            raise SlotFileError(f"{name} is {stored[name]} in the file and {here.get(name)} here")
