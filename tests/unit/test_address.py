"""The table of addresses that may be dialled, literal by literal."""

import ipaddress

import pytest

from ploti.server.sources.addresses import is_allowed, is_opened

EDGES = """
0.0.0.0 0.255.255.255
10.0.0.0 10.255.255.255
100.64.0.0 100.127.255.255
127.0.0.0 127.255.255.255
169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255
192.0.0.0 192.0.0.255
192.0.2.0 192.0.2.255
192.88.99.0 192.88.99.255
192.168.0.0 192.168.255.255
198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255
203.0.113.0 203.0.113.255
224.0.0.0 255.255.255.255
168.63.129.16 168.63.129.16
"""
CLOSED = sorted(set(EDGES.split()))
OUTSIDE = {
    str(neighbour)
    for first, last in (line.split() for line in EDGES.strip().split("\n"))
    for neighbour in (
        ipaddress.ip_address(first) - 1 if first != "0.0.0.0" else None,
        ipaddress.ip_address(last) + 1 if last != "255.255.255.255" else None,
    )
    if neighbour
}


@pytest.mark.parametrize("address", [*CLOSED, "169.254.169.254", "192.0.0.8"])
def test_an_address_of_a_closed_network_is_refused_in_every_disguise(address: str) -> None:
    number = int(ipaddress.ip_address(address))
    disguises = [
        address,
        f"::ffff:{address}",
        f"::ffff:{number >> 16:x}:{number & 0xFFFF:x}",
        f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}",
        str(ipaddress.IPv6Address(number)),
    ]
    assert [each for each in disguises if is_allowed(each)] == []


@pytest.mark.parametrize("address", sorted(OUTSIDE))
def test_the_neighbours_of_closed_networks_are_public(address: str) -> None:
    assert is_allowed(address)


@pytest.mark.parametrize(
    "address", ["9.9.9.9", "::ffff:9.9.9.9", "64:ff9b::909:909", "2606:4700:4700::1111", "2a00::1"]
)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(address)


@pytest.mark.parametrize(
    "address",
    [
        *("::", "::1", "::127.0.0.1", "::7f00:1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1"),
        *("fd00::1", "ff02::1", "64:ff9b:1::1", "100::1", "2001::1", "2001:1ff:ffff::1"),
        *("2001:db8::1", "2002:7f00:1::1", "2002:909:909::1", "3fff::1", "3fff:fff::1", "4000::1"),
        *("5f00::1", "1fff::1"),
    ],
)
def test_a_special_address_of_ipv6_is_refused(address: str) -> None:
    assert not is_allowed(address)


def test_an_opened_network_is_allowed_and_nothing_beside_it() -> None:
    allow = ("127.0.0.0/8", "fd00::/8")
    assert is_allowed("127.0.0.1", allow=allow)
    assert is_allowed("::ffff:127.0.0.1", allow=allow)
    assert is_allowed("fd12::1", allow=allow)
    assert not is_allowed("10.0.0.1", allow=allow)
    assert not is_allowed("::1", allow=allow)


def test_a_public_address_is_allowed_but_not_opened() -> None:
    assert not is_opened("9.9.9.9", allow=("127.0.0.0/8",))
    assert is_opened("127.0.0.9", allow=("127.0.0.0/8",))


@pytest.mark.parametrize("name", ["localhost", "0x7f000001", "2130706433", "127.1", ""])
def test_a_name_is_never_judged(name: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6 address"):
        is_allowed(name)
