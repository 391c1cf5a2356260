"""What can go wrong between a task and its agent."""


class Error(RuntimeError):
    """Base of all errors of this package but wrong arguments (ValueError, OSError)."""


class Refused(Error):
    """The agent or the daemon refused a request; `code` as docs/worker.md lists them."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text or code)
        self.code = code


class OutOfOrder(Refused):
    """A rank did a collective more or less than the others."""


class Unavailable(Refused):
    """The daemon cannot be asked now; try again."""


class Unreachable(Error):
    """The agent could not be reached for as long as patience lasted."""


class Stopping(Error):
    """The task is to stop (SIGTERM has been sent): nobody will answer a collective any more."""


def of_answer(code: str, text: str) -> Refused:
    kinds = {"out-of-order": OutOfOrder, "unavailable": Unavailable}
    return kinds.get(code, Refused)(code, text)
