"""The new file gets its name before it is known to be on the disk."""

KILLED_BY = "it is on the disk before it has the name"


def save(path, identity, token_ids, payload):
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".saving-")
    try:
        with open(handle, "wb") as file:
            file.write(pack(identity, token_ids, payload))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
