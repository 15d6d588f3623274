//! The IP address ranges that are not part of the public internet, and those that Galley never
//! connects to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address and prefix length of every IPv4 range that is not public.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),           // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, including cloud metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // former 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// The range of all global IPv6 addresses. Excludes the unspecified address, loopback, unique local
/// (`fc00::/7`), link-local (`fe80::/10`), multicast (`ff00::/8`), discard-only (`100::/64`) and
/// unallocated addresses.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of the global range that are not public.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, including Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// IPv4 addresses that no policy allows: they answer with credentials of the machine.
const METADATA_V4: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local: metadata of most clouds
    (Ipv4Addr::new(100, 100, 100, 200), 32), // Alibaba Cloud
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure, in a public range
    (Ipv4Addr::new(192, 0, 0, 192), 32), // Oracle Cloud
];

/// IPv6 addresses that no policy allows.
const METADATA_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10), // link-local
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32), // AWS: metadata and pod credentials
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128), // Google Cloud
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128), // Scaleway
];

/// NAT64 (`64:ff9b::/96`): the IPv4 address is in the last four bytes.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// 6to4 (`2002::/16`): the IPv4 address follows the prefix.
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// The bytes of an IPv6 address that contain an IPv4 address, most significant first.
type Position = [usize; 4];

/// The last four bytes.
const LAST: Position = [12, 13, 14, 15];

/// Every IPv6 range whose addresses can contain an IPv4 address, and where.
const EMBEDDING_V6: [(Ipv6Addr, u32, &[Position]); 6] = [
    (Ipv6Addr::UNSPECIFIED, 96, &[LAST]), // IPv4-compatible
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, &[LAST]), // IPv4-mapped
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, &[LAST]), // IPv4-translated
    (NAT64.0, NAT64.1, &[LAST]),
    // NAT64 with a prefix of the local network: its length, 48 to 96, is not known.
    (
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        &[LAST, [6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]],
    ),
    (SIX_TO_FOUR.0, SIX_TO_FOUR.1, &[[2, 3, 4, 5]]),
];

/// Teredo (`2001::/32`): the IPv4 address of the server follows the prefix; that of the client is in
/// the last four bytes, inverted.
const TEREDO: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);

/// Whether the address belongs to the public internet. For an IPv6 address with an embedded IPv4
/// address, the IPv4 address decides.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether the address belongs to a cloud metadata service or is link-local, also as an IPv4 address
/// within an IPv6 address.
pub(super) fn is_metadata(address: IpAddr) -> bool {
    let is_metadata_v4 = |address| METADATA_V4.into_iter().any(|range| within_v4(address, range));
    match address {
        IpAddr::V4(address) => is_metadata_v4(address),
        IpAddr::V6(address) => {
            METADATA_V6.into_iter().any(|range| within_v6(address, range))
                || embedded_v4(address).into_iter().any(is_metadata_v4)
        }
    }
}

/// Every IPv4 address that a router could extract from the address.
fn embedded_v4(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = address.octets();
    let at = |position: Position| Ipv4Addr::from(position.map(|index| octets[index]));
    let ranges = EMBEDDING_V6.into_iter();
    let ranges = ranges.filter(|(first, length, _)| within_v6(address, (*first, *length)));
    let mut found: Vec<_> =
        ranges.flat_map(|(.., positions)| positions.iter().copied().map(at)).collect();
    if within_v6(address, TEREDO) {
        let client = !at(LAST).to_bits();
        found.extend([at([4, 5, 6, 7]), Ipv4Addr::from_bits(client)]);
    }
    found
}

fn within_v4(address: Ipv4Addr, (first, length): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (32 - length) == 0
}

fn within_v6(address: Ipv6Addr, (first, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (128 - length) == 0
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.into_iter().any(|range| within_v4(address, range))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |range| within_v6(address, range);
    let octets = address.octets();
    let embedded =
        |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    if let Some(mapped) = address.to_ipv4_mapped() {
        is_public_v4(mapped)
    } else if within(NAT64) {
        is_public_v4(embedded(12))
    } else if within(SIX_TO_FOUR) {
        is_public_v4(embedded(2))
    } else {
        within(GLOBAL_V6) && !NOT_PUBLIC_V6.into_iter().any(within)
    }
}
