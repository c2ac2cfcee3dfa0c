"""One short file for each framework that agents are written in: its messages <-> `agents.conversation`, nothing else.

Each needs its framework and says so; none is imported by the rest of foveate.
"""
