"""Quality and speed, as ratios to something measured in the same run. See README.md."""
