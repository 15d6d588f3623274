//! A network of IP addresses, as operators write it: `10.0.0.0/8`, `2001:db8::/32` or an address.

use std::{net::IpAddr, str::FromStr};

/// All addresses with the same prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix_bits: u32,
}

impl IpNetwork {
    /// Whether an address belongs to the network. An IPv4 address that is mapped into IPv6 is an
    /// IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let bits = network.to_bits() ^ address.to_bits();
                bits.leading_zeros() >= self.prefix_bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let bits = network.to_bits() ^ address.to_bits();
                bits.leading_zeros() >= self.prefix_bits
            }
            _ => false,
        }
    }
}

/// A text that is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address or a network such as 10.0.0.0/8")]
pub struct IpNetworkError;

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| IpNetworkError)?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let is_digits =
            |text: &&str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let prefix_bits = match prefix {
            Some(prefix) => Some(prefix)
                .filter(is_digits)
                .and_then(|it| it.parse().ok())
                .ok_or(IpNetworkError)?,
            None => max_bits,
        };
        if prefix_bits > max_bits {
            return Err(IpNetworkError);
        }
        Ok(Self { address, prefix_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let contains = |address: &str| {
                network.parse::<IpNetwork>().unwrap().contains(address.parse().unwrap())
            };
            assert!(contains(inside) && !contains(outside), "{network}");
        }
        for all in ["0.0.0.0/0", "::/0"] {
            let network: IpNetwork = all.parse().unwrap();
            assert!(network.contains(network.address), "{all}");
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_refused() {
        for bad in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "a.example", "10/8"] {
            assert_eq!(bad.parse::<IpNetwork>(), Err(IpNetworkError), "{bad}");
        }
    }
}
