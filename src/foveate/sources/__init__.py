"""Sources: "for these slots, what do you have?" One file each; every one brings candidates and decides nothing."""

from foveate.sources.gather import Around, Gathered, Report, Source, gather
from foveate.sources.shipped import SHIPPED

__all__ = ["SHIPPED", "Around", "Gathered", "Report", "Source", "gather"]
