"""Front ends: thin rooms that call the engine and format what it says."""
