"""Systems that need a checkout of foveate: `foveate eval run ... --with bench.systems.file_bm25`."""
