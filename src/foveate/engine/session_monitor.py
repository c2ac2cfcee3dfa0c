"""Warns if the sessions of several people probably share one memory.

A store without a named user belongs to one person, whose sessions share their memory. A bot that names none for many
sessions shows each of its users what the others said.
"""

from __future__ import annotations

import logging

from foveate.types import Scope

MAX_SESSIONS_WITHOUT_USER = 20
"""Sessions without a user in one process from which on they probably belong to several people."""

log = logging.getLogger("foveate.sessions")


class SessionMonitor:
    """Counts the sessions without a user that adapters and services see, and logs one warning."""

    def __init__(self) -> None:
        self._sessions: set[str] = set()
        self._has_warned = False

    def add(self, scope: Scope) -> None:
        """Count the session of a scope if it names no user."""
        if scope.user is not None or scope.session is None or self._has_warned:
            return
        self._sessions.add(scope.session)
        if len(self._sessions) > MAX_SESSIONS_WITHOUT_USER:
            self._has_warned = True
            self._sessions.clear()
            log.warning(
                "More than %d sessions without a user share one memory: each can see what was said in the others. If they "
                "belong to several people, name the user of each: user=... in the adapter or the call, `user` in the body "
                "of a request, or a token of one user.",
                MAX_SESSIONS_WITHOUT_USER,
            )
