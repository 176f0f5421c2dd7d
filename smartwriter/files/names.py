"""Names of people's things as names of files.

Two kinds. Inside ``.smartwriter/`` names are plain ASCII and map back to what they stand for:
``%`` and two hex digits stand for a byte that is not plain. In ``collections/`` names are for
people to read, in any script, and only lose what a file system cannot take.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from smartwriter.errors import UnsafeName
from smartwriter.text.harmless import is_harmless_name
from smartwriter.text.sameness import normal

MAX_NAME_BYTES = 120  # leaves room for suffixes under every file system's 255

MAX_FILE_NAME_BYTES = 250
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_SESSION = re.compile(r"(?:[\w.-]|%[0-9A-F]{2})+", re.ASCII)
_UUID_LENGTH = 36
# Syncthing's, and whatever anybody puts behind a UUID.
_COPY = re.compile(
    r".*\.sync-conflict-\d{8}-\d{6}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}.", re.IGNORECASE | re.ASCII
)
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SHORTENED = re.compile(r"[\w.%-]+~[0-9a-f]{16}", re.ASCII)


def session_name(name: str) -> str:
    """The file name, without suffix, of a session id or of one part of a subpath.

    :raises UnsafeName: for what could leave its folder, or would mean a device somewhere.
    """
    if why := _why_unsafe(name):
        raise UnsafeName(name, why)
    plain = _plain(name)
    if len(plain) > MAX_NAME_BYTES:
        raise UnsafeName(name, f"it is longer than {MAX_NAME_BYTES} bytes")
    return plain


def is_session_name(plain: str) -> bool:
    """Whether a file name, without suffix, is one that :func:`session_name` gives.

    A sync service's second copy of a session has another, and is no session of its own.
    """
    # As nearly all are: a listing asks for each, and an expression takes over twice as long.
    if len(plain) == _UUID_LENGTH and plain.isascii() and plain.replace("-", "").isalnum():
        return True
    return _SESSION.fullmatch(plain) is not None and _COPY.match(plain) is None


def project_name(key: str) -> str:
    """The folder name of a project key. A key too long is shortened, uniquely.

    The SDK derives its keys from paths of any length, so none of these is refused.

    :raises UnsafeName: for an empty key.
    """
    if not key:
        raise UnsafeName(key, "it is empty")
    if len(key) <= MAX_NAME_BYTES and _SHORTENED.fullmatch(key):
        return key
    encoded = key.encode("utf-8", "surrogatepass")
    plain = "".join(f"%{byte:02X}" for byte in encoded) if _why_unsafe(key) else _plain(key)
    if len(plain) <= MAX_NAME_BYTES:
        return plain
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f"{plain[: MAX_NAME_BYTES - 17]}~{digest}"


def original(plain: str) -> str:
    """What a plain name stands for. A shortened one stands for itself."""
    try:
        return plain if "~" in plain else unquote(plain, errors="surrogatepass")
    except UnicodeDecodeError:  # not a name of ours
        return plain


def readable_name(title: str, taken: frozenset[str] = frozenset()) -> str:
    """A title as a file name that people can read, unlike all ``taken`` ones in any case."""
    name = normal(title)
    name = re.sub('[\x00-\x1f\x7f/\\\\:*?"<>|\ud800-\udfff]+', " ", name)
    name = re.sub(r"\s+", " ", name).strip(" .")
    name = _cut(name, MAX_NAME_BYTES - 4).rstrip(" .") or "untitled"
    if _DEVICE.fullmatch(name):
        name = f"_{name}"  # not behind it: "con.txt_" is still the device
    lower = {other.casefold() for other in taken}
    candidate, number = name, 1
    while candidate.casefold() in lower:
        number += 1
        candidate = f"{name} {number}"
    return candidate


def is_plain_name(name: str) -> bool:
    """Whether a name can stand within ``.smartwriter`` as it is, and be handed to a program."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_readable_name(name: str) -> bool:
    """Whether a name means a file or folder right where it is used, and can be shown."""
    return (
        is_harmless_name(name)
        and not name.startswith(".")
        and _why_unsafe(name) is None
        and len(name.encode("utf-8", "replace")) <= MAX_FILE_NAME_BYTES
    )


def _why_unsafe(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "it means a folder"
    if "/" in name or "\\" in name:
        return "it has a path separator"
    if _CONTROL.search(name):
        return "it has a control character"
    if _DEVICE.fullmatch(name):
        return "it means a device on Windows"
    return None


def _plain(name: str) -> str:
    # A leading dot would hide the file, a trailing one is dropped by Windows, and a name that
    # ends like a transcript would collide with the folder of another session.
    quoted = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if quoted.endswith(".jsonl"):
        quoted = quoted[: -len(".jsonl")] + "%2Ejsonl"
    return quoted[:-1] + "%2E" if quoted.endswith(".") else quoted


def _cut(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode("utf-8", "ignore")
