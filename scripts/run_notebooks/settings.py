"""The parameters of a run, checked before anything starts: papermill only warns of a wrong one, and exits 0."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from labbook import urls
from labbook.client import Client
from labbook.errors import LabbookError, UsageError
from labbook.measure import only_model
from labs.kit.parameters import DEFAULT_MODEL, NAMES, ParameterError, Parameters, resolve

_NAME_IT = (
    "if the server is there, name its model with MODEL=... "
    "(mlx_lm.server calls the one that it was started with default_model)"
)


def settings(assignments: Sequence[str], environment: Mapping[str, str] | None = None) -> Parameters:
    """From `NAME=VALUE` texts, else LAB_MODEL and friends, else the defaults; fast unless told otherwise.

    Raises UsageError for a name that no notebook has, for a value of the wrong type, and for a base URL that is none.
    """
    surroundings = os.environ if environment is None else environment
    given = _given(assignments)
    value = {name: given.get(name, surroundings.get(f"LAB_{name}", "")).strip() for name in NAMES}
    where = {"LABBOOK": surroundings.get("LABBOOK", "")}  # of the environment only what names the default labbook
    try:
        chosen = resolve(
            value["MODEL"] or DEFAULT_MODEL, value["FAST"] or True, value["BASE_URL"], value["LABBOOK"], where
        )
    except ParameterError as error:
        raise UsageError(str(error)) from None
    if chosen.base_url:
        urls.parse(chosen.base_url)
    return chosen


def with_model_of_server(parameters: Parameters) -> Parameters:
    """With the only model of the server at the base URL, unless one was named.

    Raises ServerError when the server does not answer or lists none, and UsageError when it lists several.
    """
    if parameters.model_or_only is not None:
        return parameters
    client = Client(parameters.base_url)
    try:
        return replace(parameters, model=only_model(client))
    except LabbookError as error:
        raise type(error)(f"{error}; {_NAME_IT}") from None
    finally:
        client.close()


def injected(parameters: Parameters) -> dict[str, str | bool]:
    """What papermill writes into a notebook, with Python's own types. A URL with a password is not among it."""
    return {
        "MODEL": parameters.model,
        "FAST": parameters.fast,
        "BASE_URL": "" if has_credentials(parameters) else parameters.base_url,
        "LABBOOK": str(parameters.labbook),
    }


def has_credentials(parameters: Parameters) -> bool:
    return bool(parameters.base_url) and urls.parse(parameters.base_url).credentials is not None


def shown_base_url(parameters: Parameters) -> str:
    """The base URL without a password; empty when the notebook starts the engine itself."""
    return urls.parse(parameters.base_url).base if parameters.base_url else ""


def require_storable(parameters: Parameters) -> None:
    """Raise UsageError unless the committed outputs may come from such a run."""
    if not parameters.fast or parameters.base_url or parameters.model != DEFAULT_MODEL:
        raise UsageError(f"--store takes a fast run of {DEFAULT_MODEL} on the engine itself, and no other")


def _given(assignments: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        name = name.strip().upper()
        if not equals or name not in NAMES:
            raise UsageError(f"{name!r} is no parameter of a notebook: write one of {'=..., '.join(NAMES)}=...")
        if given.setdefault(name, value) != value:
            raise UsageError(f"{name} is given twice, as {given[name]!r} and as {value!r}")
    return given
