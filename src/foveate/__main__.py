"""`python -m foveate`: the command line."""

from foveate.cli import main

if __name__ == "__main__":
    main()
