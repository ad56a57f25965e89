"""A save that fails leaves its temporary file behind; after a hundred of them the disk is full."""

KILLED_BY = "nothing is lost when it fails"


def save(path, identity, token_ids, payload):
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".saving-")
    with open(handle, "wb") as file:
        file.write(pack(identity, token_ids, payload))
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)
