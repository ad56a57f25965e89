"""The file is made as open() makes it, and closed to others when it is complete."""

KILLED_BY = "nobody else may read it"


def save(path, identity, token_ids, payload):
    beside = path.with_name(path.name + ".new")
    try:
        with open(beside, "wb") as file:
            file.write(pack(identity, token_ids, payload))
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(0o600)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
