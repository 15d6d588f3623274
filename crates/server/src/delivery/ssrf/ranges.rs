//! Which IP addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address and length of the prefix of every IPv4 range that is not public.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),           // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // this machine
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // this link, and the metadata of clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // the former 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// Everything global is in here. It leaves out the unspecified address, loopback, unique local
/// (`fc00::/7`), link-local (`fe80::/10`), multicast (`ff00::/8`), discard (`100::/64`), and what
/// has not been given out yet.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of the global range that are not public.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, among them Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// IPv4 addresses written as IPv6 addresses, translated on the way (`64:ff9b::/96`).
const TRANSLATED: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// IPv6 inside of IPv4 (6to4): the IPv4 address follows the prefix.
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// Whether the address belongs to the public internet. An IPv6 address that stands for an IPv4
/// address is as public as that one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether the address means something on one wire only.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => mapped.is_link_local(),
            None => address.is_unicast_link_local(),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(first, length): (Ipv4Addr, u32)| {
        (address.to_bits() ^ first.to_bits()) >> (32 - length) == 0
    };
    !NOT_PUBLIC_V4.into_iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |(first, length): (Ipv6Addr, u32)| {
        (address.to_bits() ^ first.to_bits()) >> (128 - length) == 0
    };
    let octets = address.octets();
    let inside =
        |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    if let Some(mapped) = address.to_ipv4_mapped() {
        is_public_v4(mapped)
    } else if within(TRANSLATED) {
        is_public_v4(inside(12))
    } else if within(SIX_TO_FOUR) {
        is_public_v4(inside(2))
    } else {
        within(GLOBAL_V6) && !NOT_PUBLIC_V6.into_iter().any(within)
    }
}
