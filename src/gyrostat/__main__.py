"""``python -m gyrostat`` is the command line."""

from gyrostat.cli import main

if __name__ == "__main__":
    main()
