//! A range of IP addresses in the notation of the configuration: `203.0.113.0/24`, `2001:db8::/64`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses with the same leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

/// The text is not an address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address range: write NETWORK/PREFIX without host bits, for example 203.0.113.0/24")]
pub struct InvalidAddressRange;

// === impl AddressRange ===

impl FromStr for AddressRange {
    type Err = InvalidAddressRange;

    fn from_str(text: &str) -> Result<Self, InvalidAddressRange> {
        let (address, prefix) = text.split_once('/').ok_or(InvalidAddressRange)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidAddressRange)?;
        let prefix: u8 = prefix.parse().map_err(|_| InvalidAddressRange)?;
        // Host bits have no meaning. They, and IPv4 addresses in the form of IPv6, are probably mistakes.
        let rest = match address {
            IpAddr::V4(address) => u128::from(u32::from(address).checked_shl(u32::from(prefix)).unwrap_or(0)),
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => return Err(InvalidAddressRange),
            IpAddr::V6(address) => u128::from(address).checked_shl(u32::from(prefix)).unwrap_or(0),
        };
        let widest = if address.is_ipv4() { 32 } else { 128 };
        if prefix > widest || rest != 0 {
            return Err(InvalidAddressRange);
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_networks() {
        for text in ["203.0.113.0/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::/64", "::/0", "::1/128"] {
            assert_eq!(text.parse::<AddressRange>().map(|range| range.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.1/24",
            "::1/64",
            "::/129",
            "::ffff:10.0.0.0/112",
            "a/8",
            "10.0.0.0/+8x",
        ] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
