import logging
import warnings

# Dagster's notices about features this project has chosen knowingly (docs/decisions.md): backfill policies,
# mappings between the grid and one of its dimensions, conditions evaluated in our own process.
warnings.filterwarnings("ignore", message=r".* is currently in (beta|preview)")
# Said at each tick where the daemon was started with -m, which calls the location by its module. It concerns components
# that are kept outside the project, of which there are none.
logging.getLogger("dagster.components.core.component_tree").addFilter(
    lambda record: not record.getMessage().startswith("The code location name")
)
