"""Whether the hub has a model, asked once and with a time limit: the libraries retry each absent file for minutes.

Only a model that somebody has named is asked for; of a default nothing leaves this machine (SPEC 8).
"""

import re

from paper_assets.errors import ModelUnavailable

_ERRNO = re.compile(r"\[Errno -?\d+\]\s*")
_TIMEOUT = 10.0  # seconds until the hub counts as unreachable


def hub_has(name: str, *, kind: str, instead: str) -> bool:
    """Whether the hub answers for the model; False if only the local cache has it.

    Raises ModelUnavailable where neither has it; `kind` and `instead` say in it what is missing and what to give.
    """
    # With its HTTP client a tenth of a second, for what a machine with the packaged model never asks.
    from huggingface_hub import model_info, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        model_info(name, timeout=_TIMEOUT)
    except HFValidationError:
        raise ModelUnavailable(f"{kind} {name!r} is neither a folder nor a name on the hub") from None
    except Exception as error:  # offline, unreachable, unknown there, or closed to us
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return False
        raise ModelUnavailable(
            f"{kind} {name!r} is not on this machine and the hub does not give it ({reason_of(error)}); give {instead}"
        ) from None
    return True


def need_on_this_machine(name: str, *, kind: str, instead: str) -> None:
    """Raises ModelUnavailable, with what fetches it, unless the model lies in the local cache. Asks nobody."""
    from huggingface_hub import try_to_load_from_cache

    if not isinstance(try_to_load_from_cache(name, "config.json"), str):
        raise ModelUnavailable(
            f"{kind} {name!r} is not on this machine; fetch it once with `hf download {name}`, or give {instead}"
        )


def reason_of(error: Exception) -> str:
    """The first line of what a library says of its failure, without the number that the system gives it."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return _ERRNO.sub("", line)[:200]
