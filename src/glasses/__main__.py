"""``python -m glasses`` is the command line."""

import sys

from glasses.cli import main

sys.exit(main())
