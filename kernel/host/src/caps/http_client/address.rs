//! Which addresses are on the public internet.
//!
//! A list of what is not, kept in one place: loopback, private, link-local (where cloud metadata services
//! live), shared, documentation, multicast and reserved ranges, and every way to write one of those inside
//! an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(v4) = embedded_v4(address) {
        return is_public_v4(v4);
    }
    let first = address.segments()[0];
    let reserved = address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || (first & 0xfe00) == 0xfc00
        || (first & 0xffc0) == 0xfe80
        || (first & 0xffc0) == 0xfec0
        || (first == 0x2001 && address.segments()[1] == 0x0db8)
        || (first == 0x0100 && address.segments()[1..4] == [0, 0, 0]);
    !reserved
}

/// Mapped, compatible, NAT64 and 6to4 forms all reach an IPv4 host.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(pair(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(pair(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(pair(high, low)),
        [0x2002, high, low, ..] => Some(pair(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inside_a_network_counts_as_public() {
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(inside.parse().expect("an address")), "{inside}");
        }
        for outside in ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "100.128.0.1"] {
            assert!(is_public(outside.parse().expect("an address")), "{outside}");
        }
    }
}
