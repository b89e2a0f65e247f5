"""Which network addresses may be dialled: the public ones, and networks that were opened."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# The table is our own: `ipaddress.is_global` lets through ten kinds of address that are not public.
_CLOSED_4 = [
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # a cloud's own services behind an address that looks public
    )
]
_PUBLIC_6 = ip_network("2000::/3")
_CLOSED_6 = [
    ip_network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
_COMPATIBLE = ip_network("::/96")
_NAT64 = ip_network("64:ff9b::/96")


def is_allowed(address: str, *, allow: Iterable[str] = ()) -> bool:
    """Whether an address, as the socket is about to dial it, may be dialled.

    `allow` are the networks opened by PLOTI_ALLOW_NETWORKS. An IPv4 address inside an IPv6 one
    counts as itself. Raises ValueError for a text that is no address: names are never judged.
    """
    return is_opened(address, allow=allow) or _is_public(_inner(_parse(address)))


def is_opened(address: str, *, allow: Iterable[str]) -> bool:
    """Whether an address lies in one of the networks that were opened."""
    inner = _inner(_parse(address))
    networks = [ip_network(network) for network in allow]
    return any(inner in network for network in networks if network.version == inner.version)


def _parse(address: str) -> IPv4Address | IPv6Address:
    return ip_address(address.partition("%")[0])


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that a mapped, compatible or NAT64 address reaches."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_4)
    return address in _PUBLIC_6 and not any(address in network for network in _CLOSED_6)
