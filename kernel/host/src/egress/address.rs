//! Which addresses there are on the way out.
//!
//! A list of what is not on the public internet, kept in one place: loopback, private, link-local, shared,
//! documentation, multicast and reserved ranges, and every way to write one of those inside an IPv6 address.
//! Of IPv6 only the range of global unicast counts as public; the rest is reserved, and what is reserved today
//! may be somebody's network tomorrow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The internet.
    Public,
    /// The machine itself, or the operator's own network.
    Private,
    /// Where clouds serve a machine's own credentials, and whatever else only the same link has.
    Metadata,
}

/// Services that hand out a machine's credentials at addresses that are not link-local: Azure, Alibaba, Oracle.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];
/// The same over IPv6: Google, Oracle.
const METADATA_V6: [[u16; 8]; 2] =
    [[0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254], [0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]];
/// Amazon's, of which more than one address serves something of the machine's: `fd00:ec2::/32`.
const METADATA_V6_AMAZON: [u16; 2] = [0xfd00, 0x0ec2];

pub fn place(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(v4) => place_v4(v4),
        IpAddr::V6(v6) => place_v6(v6),
    }
}

fn place_v4(address: Ipv4Addr) -> Place {
    if address.is_link_local() || METADATA_V4.contains(&address) {
        return Place::Metadata;
    }
    let [a, b, c, _] = address.octets();
    let reserved = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    if reserved { Place::Private } else { Place::Public }
}

fn place_v6(address: Ipv6Addr) -> Place {
    if let Some(v4) = embedded_v4(address) {
        return place_v4(v4);
    }
    let segments = address.segments();
    let [first, second, third, ..] = segments;
    if (first & 0xffc0) == 0xfe80 || [first, second] == METADATA_V6_AMAZON || METADATA_V6.contains(&segments) {
        return Place::Metadata;
    }
    if [first, second, third] == LOCAL_NAT64 {
        return place_translated(address);
    }
    if [first, second] == TEREDO {
        return place_tunnelled(address);
    }
    let global = (first & 0xe000) == 0x2000;
    // Protocol assignments, among them benchmarking, and both ranges for documentation.
    let reserved = (first == 0x2001 && (second < 0x0200 || second == 0x0db8)) || (first == 0x3fff && second < 0x1000);
    if global && !reserved { Place::Public } else { Place::Private }
}

/// Prefix of translators that a network runs for itself.
const LOCAL_NAT64: [u16; 3] = [0x64, 0xff9b, 1];

/// An address under that prefix holds an IPv4 address in one of four places, and only the network knows which. One that is
/// nothing but prefix and 32 bits can be read in one way alone; of any other the worst reading counts, and none of them is
/// good enough to be public.
fn place_translated(address: Ipv6Addr) -> Place {
    if let [_, _, _, 0, 0, 0, high, low] = address.segments() {
        return place_v4(pair(high, low));
    }
    let octets = address.octets();
    // After 48, 56, 64 and 96 bits; the ninth octet is never part of it.
    let readings = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]];
    let leads_to = |at: [usize; 4]| place_v4(Ipv4Addr::from(at.map(|at| octets[at])));
    let to_credentials = readings.into_iter().any(|reading| leads_to(reading) == Place::Metadata);
    if to_credentials { Place::Metadata } else { Place::Private }
}

/// Prefix of Teredo, which carries IPv6 in packets of IPv4.
const TEREDO: [u16; 2] = [0x2001, 0];

/// Such an address names two hosts of IPv4: the server that opens the tunnel, and the client at its end, whose bits are
/// inverted. A packet goes to both, so the worse of the two counts. That both are public does not make the address so: it
/// is of a reserved range still.
fn place_tunnelled(address: Ipv6Addr) -> Place {
    let [_, _, server_high, server_low, _, _, client_high, client_low] = address.segments();
    let ends = [pair(server_high, server_low), pair(!client_high, !client_low)];
    let to_credentials = ends.into_iter().any(|end| place_v4(end) == Place::Metadata);
    if to_credentials { Place::Metadata } else { Place::Private }
}

fn pair(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

/// Mapped, translated, compatible, NAT64 and 6to4 forms all reach an IPv4 host.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(pair(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(pair(high, low)),
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
            "64:ff9b:1::10.0.0.1",
            "64:ff9b:1:808:8:800::",
            "2001::1",
            // Teredo: by its server, by its client, and where both are public.
            "2001:0:a00:1::f7f7:f7f7",
            "2001:0:808:808::80ff:fffe",
            "2001:0:808:808::f7f7:f7f7",
            "2001:2::1",
            "3fff::1",
            "4000::1",
            "192.88.99.1",
        ] {
            assert_ne!(place(inside.parse().expect("an address")), Place::Public, "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "93.184.215.14",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "100.128.0.1",
            "2a00::1",
            "64:ff9b:1::8.8.8.8",
        ] {
            assert_eq!(place(outside.parse().expect("an address")), Place::Public, "{outside}");
        }
    }

    #[test]
    fn services_that_hand_out_credentials_are_told_from_the_operators_network() {
        for metadata in [
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd00:ec2:1::1",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fe80::a9fe:a9fe",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            // The other three places: after 48, 56 and 64 bits.
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:a9:fe:a9fe::",
            "64:ff9b:1:0:a9:fea9:fe00::",
            "2002:a9fe:a9fe::1",
            // Teredo: as the server, and as the client with its bits inverted.
            "2001:0:a9fe:a9fe::f7f7:f7f7",
            "2001:0:808:808::5601:5601",
            "2001:0:808:808:8000:63bf:57c0:7eef",
        ] {
            assert_eq!(place(metadata.parse().expect("an address")), Place::Metadata, "{metadata}");
        }
        for network in [
            "127.0.0.1",
            "10.0.0.1",
            "fd00::1",
            "::1",
            "fd20:ce::1",
            "64:ff9b:1:808:8:800::",
            "2001:0:808:808::f7f7:f7f7",
        ] {
            assert_eq!(place(network.parse().expect("an address")), Place::Private, "{network}");
        }
    }
}
