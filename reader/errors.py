"""The one error of the reader."""


class DroppedError(Exception):
    """The message is dropped; `code` is one of `reader.contract.DROPS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
