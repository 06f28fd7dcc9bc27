"""Do work in a separate process, so that a crash, a hang or excessive memory is an outcome.

The processes are forked from one that has imported the stores once, so that each costs milliseconds.
"""

import resource
from collections.abc import Callable
from multiprocessing.connection import Connection

from paper_assets.errors import PaperAssetsError
from tests.forked_commands import forking

MOST_MEMORY = 6_000_000_000  # bytes of address space; DuckDB and Chroma reserve much more than they use

Work = Callable[..., None]


class Crashed(Exception):
    """The process crashed or was killed."""


def alone(work: Work, *arguments: object, seconds: float) -> None:
    """Do the work in a separate process; raise its PaperAssetsError, or Crashed for any other end."""
    context = forking()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_reported, args=(there, work, arguments), daemon=True)
    child.start()
    there.close()
    try:
        outcome = here.recv() if here.poll(seconds) else ("hangs", f"no end after {seconds:g} s")
    except EOFError:
        child.join(seconds)
        outcome = ("crashes", f"exit code {child.exitcode}")
    finally:
        child.kill()
        child.join()
        here.close()
    kind, text = outcome
    if kind == "refused":
        raise PaperAssetsError(text)
    if kind != "taken":
        raise Crashed(f"{kind}: {text}")


def _reported(answer: Connection, work: Work, arguments: tuple[object, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    try:
        work(*arguments)
        answer.send(("taken", ""))
    except PaperAssetsError as error:
        answer.send(("refused", str(error)))
    except BaseException as error:
        answer.send(("raises", f"{type(error).__name__}: {str(error)[:300]}"))
