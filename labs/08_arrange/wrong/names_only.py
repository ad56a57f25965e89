"""Only the names of the tools are told."""

KILLED_BY = "nothing is lost"


def tools(ask):
    names = ", ".join(sorted(str(tool["name"]) for tool in ask.tools))
    return chat(f"{persona(ask)} Call one of these tools: {names}", ask.question)
