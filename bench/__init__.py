"""Quality and speed, as ratios against something run beside it. `python -m bench` runs all, `python -m bench NAME` one."""
