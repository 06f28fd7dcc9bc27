"""Read files from outside in a separate process with little memory and time, because a small file can cost gigabytes or
hours: PDFs, HTML pages and LaTeX sources.

A module that reads such files ends with `if __name__ == "__main__": answer_parent(its function)`.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Semaphore
from typing import Any

from paper_assets.errors import PdfFetchFailed

_READERS = Semaphore(2)  # processes at a time, so that memory is bounded and one slow file does not delay the next


def read_in_child(
    module: str, content: bytes, options: Mapping[str, Any], *, named: str, memory: int, seconds: float
) -> Any:
    """Return the result of the module's function for the content. Raises PdfFetchFailed, also beyond the limits.

    `memory` is in bytes of address space, `seconds` are of CPU time and of real time.
    """
    try:
        with _READERS:
            done = subprocess.run(
                [sys.executable, "-P", "-m", module, json.dumps([memory, seconds]), json.dumps(options)],
                input=content,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=True,
            )
        answer = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError):
        raise PdfFetchFailed(
            f"{named} needs more memory or time than a paper does; give another copy, or a part of it"
        ) from None
    if "failure" in answer:
        raise PdfFetchFailed(answer["failure"])
    return answer["found"]


def answer_parent(read: Callable[..., Any]) -> None:
    """Run the child process: a file on stdin, `{found}` or `{failure}` as JSON on stdout."""
    limits, options = sys.argv[1:]
    memory, seconds = json.loads(limits)
    _limit(int(memory), int(seconds) + 1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a command blocks signals for itself, and this one has ended
    try:
        answer = {"found": read(sys.stdin.buffer.read(), **json.loads(options))}
    except PdfFetchFailed as failure:
        answer = {"failure": str(failure)}
    sys.stdout.write(json.dumps(answer))


def _limit(memory: int, seconds: int) -> None:
    """Limit this process, as far as the system supports it; the limit of CPU time ends it if the parent is gone."""
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower limit is set already, or the system has none of this kind
            resource.setrlimit(what, (most, most))
