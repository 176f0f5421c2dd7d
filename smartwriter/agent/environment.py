"""Which of our environment the CLI gets, and where by it the CLI keeps its own things.

It gets what it needs to run, to reach the API and to log in. Whatever else is there, keys of other
services and secrets of other programs, is not its business. The SDK adds to the environment that it has
itself and can take nothing away, so the rest is blanked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_NEEDED = """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLORTERM TMPDIR TMP TEMP
    SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
    API_TIMEOUT_MS DO_NOT_TRACK DISABLE_TELEMETRY DISABLE_ERROR_REPORTING DISABLE_AUTOUPDATER
    MAX_THINKING_TOKENS ENABLE_PROMPT_CACHING_1H
    DBUS_SESSION_BUS_ADDRESS SECURITYSESSIONID __CF_USER_TEXT_ENCODING LD_LIBRARY_PATH
    USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES ALLUSERSPROFILE
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT OS NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
"""
_NEEDED_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "LC_", "XDG_", "NIX_")
# Through which cloud the API is reached, and what it knows its users by.
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "GCLOUD_", "CLOUDSDK_", "CLOUD_ML_", "VERTEX_", "GCE_METADATA_"),
    "CLAUDE_CODE_USE_FOUNDRY": ("AZURE_", "IDENTITY_", "MSI_"),
}
_OFF = re.compile(r"|0|false|no|off", re.IGNORECASE)


def blanked(environment: Mapping[str, str] = os.environ, also: Iterable[str] = ()) -> dict[str, str]:
    """The variables that the CLI is not to have, each empty.

    :param also: names that it gets, too.
    """
    prefixes: tuple[str, ...] = _NEEDED_PREFIXES
    for switch, names in _CLOUDS.items():
        if not _OFF.fullmatch(environment.get(switch, "")):
            prefixes += names
    wanted = {name.upper() for name in also} | set(_NEEDED.split())
    return {
        name: ""
        for name in environment
        if name.upper() not in wanted and not name.upper().startswith(prefixes)
    }


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where the CLI keeps its own things."""
    named = env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named) if named else Path.home() / ".claude"
