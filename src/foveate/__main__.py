"""`python -m foveate`: the command line."""

from foveate.front.cli import main

if __name__ == "__main__":
    main()
