"""The entry point of `ng-capture`."""

import gc
import sys


def run() -> None:
    """Run the command line and leave with its exit code."""
    # what is loaded stays: looking through it for garbage is a fifth of the start, and as much at the end
    gc.disable()
    from ng_capture_cli import exits
    from ng_capture_cli.app import app

    gc.freeze()
    gc.enable()
    code = exits.run(lambda: int(app(standalone_mode=False) or 0))
    gc.freeze()
    sys.exit(code)
