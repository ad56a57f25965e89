"""Formulas as MathML, which browsers and screen readers know without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

from scripts.build_site.problems import SiteError


def mathml(latex: str, display: str) -> str:
    """The formula as a `math` element; `display` is "inline" or "block". Raises SiteError."""
    try:
        element = str(convert(latex.strip(), display=display))
    except Exception as error:  # the library has a dozen classes of its own, and IndexError for some input
        raise SiteError(f"the formula {latex.strip()!r} is no LaTeX that MathML can say: {error!r}") from None
    if unknown := re.search(r"\\[A-Za-z]+|&(?!#?\w+;)", element):
        raise SiteError(f"the formula {latex.strip()!r} uses {unknown[0]}, which MathML has no word for")
    return element
