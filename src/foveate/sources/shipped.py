"""The sources that come with foveate, by the name that a slot uses."""

from __future__ import annotations

from foveate.sources.always import Always
from foveate.sources.gather import Source
from foveate.sources.given import Given
from foveate.sources.recent import Recent
from foveate.sources.search import Search

SHIPPED: tuple[Source, ...] = (Always(), Given(), Recent(), Search())
