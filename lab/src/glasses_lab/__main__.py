"""``python -m glasses_lab`` is the command line."""

import sys

from glasses_lab.cli import main

sys.exit(main())
