"""What is wrong with a record that does not fit its schema, in words for the person who wrote it."""

from pydantic import ValidationError


def first_fault(error: ValidationError) -> str:
    """What is wrong with a record, as `key: what`, of the first key that is wrong."""
    fault = error.errors(include_url=False, include_input=True)[0]
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if not key:
        return message
    shown = repr(fault["input"])
    return f"{key}: {message}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"
