"""Sources: "for these slots, what do you have?" One file each; every one brings candidates and decides nothing."""

from foveate.pipeline.sources.builtin import SHIPPED
from foveate.pipeline.sources.gather import Around, Gathered, Report, Source, gather

__all__ = ["SHIPPED", "Around", "Gathered", "Report", "Source", "gather"]
