"""Run the command as `python -m beaconframes`."""

from beaconframes.cli import main

if __name__ == "__main__":
    main()
