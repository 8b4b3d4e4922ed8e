"""Addresses to listen on, as the settings write them: `127.0.0.1:18802`, `[::1]:18802`, `name:18802`."""

from ipaddress import ip_address
from typing import Annotated, Final

from pydantic import AfterValidator, Field

PORT_MOST: Final = 65_535


def split_address(address: str) -> tuple[str, int]:
    """Return host (an IPv6 one without brackets) and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach it."""
    host, _ = split_address(address)
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name: 127.example.org begins like an address
        return False


def _with_port(address: str) -> str:
    if not 0 < split_address(address)[1] <= PORT_MOST:
        raise ValueError(f"a port is a number from 1 to {PORT_MOST}")
    return address


Address = Annotated[
    str,
    Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$"),
    AfterValidator(_with_port),
]
