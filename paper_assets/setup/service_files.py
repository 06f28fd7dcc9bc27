"""Write the files of other programs that run the desk: a systemd user unit, a launchd agent, a GitHub workflow."""

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = "paper-assets"
LABEL = "org.paper-assets.desk"


def systemd_path(home: Path, config_home: str = "") -> Path:
    """Return where systemd looks for a user's unit."""
    return Path(config_home or home / ".config") / "systemd" / "user" / f"{NAME}.service"


def launchd_path(home: Path) -> Path:
    """Return where launchd looks for a user's agent."""
    return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def systemd_unit(command: Sequence[str], environment: Mapping[str, str], *, folder: Path) -> str:
    """Return a unit that runs the command after login and starts it again when it fails."""
    variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in sorted(environment.items()))
    return (
        "[Unit]\n"
        "Description=paper_assets: the desk, Dagster's daemon and its UI\n"
        "After=network-online.target\n"
        "\n"
        "[Service]\n"
        f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in command)}\n"
        f"WorkingDirectory={_plain(str(folder))}\n"
        f"{variables}"
        "Restart=on-failure\n"
        "RestartSec=10\n"
        "TimeoutStopSec=20\n"
        "KillMode=mixed\n"
        "UMask=0077\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def launchd_agent(command: Sequence[str], environment: Mapping[str, str], *, folder: Path, log: Path) -> bytes:
    """Return an agent that runs the command after login and starts it again when it fails."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(environment),
            "WorkingDirectory": str(folder),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": 20,
            "Umask": 0o077,
            "StandardOutPath": str(log),
            "StandardErrorPath": str(log),
        }
    )


def _quoted(text: str) -> str:
    """Quote an argument for systemd: in double quotes, with its specifiers taken literally."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


def _plain(text: str) -> str:
    return text.replace("%", "%%")


WORKFLOW_PATH = Path(".github") / "workflows" / "paper-assets.yml"


def github_workflow(*, package: str, minute: int, hour: int, weekdays: str, days: int) -> str:
    """Return a workflow that fetches, ranks and sends every morning, and publishes the digests as pages.

    The home is kept between runs in a cache; a run without a cached home starts from nothing. Secrets become
    settings only where the repository has them.
    """
    return _WORKFLOW.format(package=package, minute=minute, hour=hour, weekdays=weekdays, days=days)


_WORKFLOW = """\
# Written by `paper-assets service github-actions`. Profiles are read from profiles/ in this repository.
# Settings: Pages from GitHub Actions; secrets for mail and language model as in the documentation.
name: Papers of the day
on:
  schedule:
    - cron: "{minute} {hour} * * {weekdays}"  # UTC
  workflow_dispatch:
permissions:
  contents: read
  pages: write
  id-token: write
concurrency:
  group: paper-assets  # two runs would fetch the same days twice
  cancel-in-progress: false
jobs:
  digest:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    environment:
      name: github-pages
      url: ${{{{ steps.pages.outputs.page_url }}}}
    env:
      PAPER_ASSETS_HOME: ${{{{ github.workspace }}}}/desk/home
      DAGSTER_HOME: ${{{{ github.workspace }}}}/desk/dagster
      PAPER_ASSETS_PROFILES: ${{{{ github.workspace }}}}/profiles
      PAPER_ASSETS_SMTP_HOST: ${{{{ vars.PAPER_ASSETS_SMTP_HOST }}}}
      PAPER_ASSETS_SMTP_USER: ${{{{ vars.PAPER_ASSETS_SMTP_USER }}}}
      PAPER_ASSETS_MAIL_FROM: ${{{{ vars.PAPER_ASSETS_MAIL_FROM }}}}
      PAPER_ASSETS_SMTP_PASSWORD: ${{{{ secrets.PAPER_ASSETS_SMTP_PASSWORD }}}}
      ANTHROPIC_API_KEY: ${{{{ secrets.ANTHROPIC_API_KEY }}}}
      OPENAI_API_KEY: ${{{{ secrets.OPENAI_API_KEY }}}}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Restore the desk
        uses: actions/cache/restore@v4
        with:
          path: desk
          key: paper-assets-${{{{ github.run_id }}}}
          restore-keys: paper-assets-
      - name: Install
        run: python -m pip install --quiet "{package}"
      - name: Fetch and rank
        run: paper-assets start --days {days}
      - name: Send the digests
        run: |
          for profile in profiles/*/delivery.json; do
            if [ -e "$profile" ]; then paper-assets deliver "$(basename "$(dirname "$profile")")"; fi
          done
      - name: Keep the desk
        if: always()
        uses: actions/cache/save@v4
        with:
          path: desk
          key: paper-assets-${{{{ github.run_id }}}}
      - name: Collect the pages
        run: |
          mkdir -p site desk/home/output/digests
          cp -R desk/home/output/digests/. site/
          find site -name '.*' -type f -delete
          {{
            echo '<!doctype html><html lang="en"><meta charset="utf-8">'
            echo '<meta name="viewport" content="width=device-width"><title>Papers of the day</title>'
            for profile in profiles/*/; do
              name=$(basename "$profile")
              echo "<h1>$name</h1><ul>"
              for page in $(ls -r "site/$name" 2>/dev/null | grep '\\.html$'); do
                echo "<li><a href='$name/$page'>${{page%.html}}</a></li>"
              done
              echo '</ul>'
            done
          }} > site/index.html
      - uses: actions/upload-pages-artifact@v3
        with:
          path: site
      - uses: actions/deploy-pages@v4
        id: pages
"""
