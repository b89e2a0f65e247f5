"""What type checkers know about the public names: read by mypy and pyright, never run."""

from typing import assert_type

import ploti

assert_type(ploti.__version__, str)
