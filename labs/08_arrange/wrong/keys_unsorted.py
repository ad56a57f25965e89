"""Tools are sorted by name, the keys of their schemas are not."""

KILLED_BY = "as much is shared as can be"


def tools(ask):
    listed = sorted(ask.tools, key=lambda tool: str(tool["name"]))
    return chat(f"{persona(ask)} Call one of these tools:\n\n{json.dumps(listed)}", ask.question)
