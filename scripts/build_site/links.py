"""Where a link in a notebook leads in the site: to a page, to a file of the checkout, or elsewhere."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from scripts.build_site.problems import SiteError

ELSEWHERE = ("http", "https", "mailto")
FILES = "files"


class Links:
    """`pages` names the page of each notebook. Files that are linked get a page, too: they collect in `files`."""

    def __init__(self, checkout: Path, pages: Mapping[Path, str]) -> None:
        self.checkout = checkout.resolve()
        self.pages = {notebook.resolve(): page for notebook, page in pages.items()}
        self.files: dict[Path, str] = {}

    def resolve(self, url: str, folder: Path) -> str:
        """The address in the site of `url` as it stands in a notebook in `folder`. Raises SiteError."""
        parts = urlsplit(url)
        if parts.scheme in ELSEWHERE or (not parts.scheme and not parts.netloc and not parts.path):
            return url
        target = self._inside(url, folder)
        anchor = f"#{parts.fragment}" if parts.fragment else ""
        if target in self.pages:
            return self.pages[target] + anchor
        if target.is_dir():
            raise SiteError(f"the link to {url!r} names a folder: link to a file in it")
        if b"\0" in target.read_bytes()[:4096]:
            raise SiteError(f"the link to {url!r} names a file that is no text, which no page can show")
        page = self.files.setdefault(target, f"{FILES}/{target.relative_to(self.checkout).as_posix()}.html")
        return quote(page) + anchor

    def picture(self, url: str, folder: Path) -> str:
        """A picture of the checkout as a part of the page: `data:...`. Raises SiteError."""
        target = self._inside(url, folder)
        kind = mimetypes.guess_type(target.name)[0] or ""
        if not kind.startswith("image/"):
            raise SiteError(f"the picture {url!r} is no image file")
        return f"data:{kind};base64,{base64.b64encode(target.read_bytes()).decode('ascii')}"

    def _inside(self, url: str, folder: Path) -> Path:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            raise SiteError(f"{url!r} is no file of the checkout: pages load nothing from elsewhere")
        target = (folder / unquote(parts.path)).resolve()
        if not target.is_relative_to(self.checkout):
            raise SiteError(f"{url!r} leads out of the checkout")
        if not target.exists():
            raise SiteError(f"{url!r} leads to {target.relative_to(self.checkout).as_posix()}, which is not there")
        return target
