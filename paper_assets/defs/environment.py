"""The environment of the process that loads the graph, read once: partitions and intervals are fixed when it loads."""

import os
from pathlib import Path

from paper_assets.settings import load_settings

settings = load_settings(os.environ, Path.cwd())
