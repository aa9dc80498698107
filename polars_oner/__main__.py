"""``python -m polars_oner``; see `polars_oner.command`."""

import sys

from polars_oner.command import main

if __name__ == "__main__":
    sys.exit(main())
