"""foveate in the settings of coding agents: added and taken out again without touching what others wrote."""
