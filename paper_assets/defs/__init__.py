import warnings

# Dagster's notices about features this project has chosen knowingly (docs/decisions.md): backfill policies,
# mappings between the grid and one of its dimensions, conditions evaluated in our own process.
warnings.filterwarnings("ignore", message=r".* is currently in (beta|preview)")
