"""The entry point of `ng-capture`."""

import sys

from ng_capture_cli import exits


def run() -> None:
    """Run the command line and leave with its exit code."""
    from ng_capture_cli.app import app

    sys.exit(exits.run(lambda: int(app(standalone_mode=False) or 0)))
