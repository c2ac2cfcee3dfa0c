"""Importers of transcripts, logs and memory files of other programs.

An importer turns the lines of a file into events and notes. Each has a key that is the same in the next import, so that
importing a file again adds only what is new. Importers do not summarise or extract anything.
"""

from foveate.integrations.importers.files import (
    FORMATS,
    ImportReport,
    import_lines,
    import_path,
    importable_files,
    save_rows,
)

__all__ = ["FORMATS", "ImportReport", "import_lines", "import_path", "importable_files", "save_rows"]
