"""Pictures that a text shows, packed into its export."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

MAX_PICTURE_BYTES = 20 << 20
MAX_PICTURES_BYTES = 60 << 20
"""Of all pictures of one document."""

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass
class Pictures:
    """Those that a document may take along: files of the workspace that are PNG, JPEG or GIF."""

    folder: Path | None = None
    """Where the text lies, which relative paths start from; None: no picture is taken along."""
    root: Path | None = None
    """Nothing outside of this folder is read."""
    left_bytes: int = MAX_PICTURES_BYTES

    def packed(self, url: str) -> str | None:
        """A picture as a ``data:`` address; None for one that is not there or must not be read."""
        if self.folder is None or self.root is None or ":" in url or url.startswith(("/", "\\", "#")):
            return None
        try:
            path = (self.folder / unquote(url)).resolve()
            inside = path.is_relative_to(self.root.resolve())
            hidden = any(part.startswith(".") for part in path.relative_to(self.root.resolve()).parts)
            if not inside or hidden or not path.is_file():
                return None
            if path.stat().st_size > min(MAX_PICTURE_BYTES, self.left_bytes):
                return None
            data = path.read_bytes()
        except (OSError, ValueError):
            return None
        kind = next((kind for start, kind in _KINDS if data.startswith(start)), None)
        if kind is None:
            return None
        self.left_bytes -= len(data)
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"
