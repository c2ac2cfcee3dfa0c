"""Importing: transcripts, logs and memory files of other programs, as records.

Comes in: a file's lines. Goes out: events and notes in a memory, each under a key that is the same next time, so that
importing again adds only what is new. Nothing is summarised or extracted here.
"""

from foveate.integrations.importers.files import FORMATS, Report, files_in, import_lines, import_path, keep

__all__ = ["FORMATS", "Report", "files_in", "import_lines", "import_path", "keep"]
