//! Which addresses are on the public internet. Users name the URLs of notifications, and providers
//! those of files; without this they could have requests sent to services inside the network. A
//! notification is checked by the address that its connection is opened to: a name that resolves to
//! something else the second time gains nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

/// Whether an address is on the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// By the special-purpose registry of IANA.
fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let is_special = matches!(
        (a, b, c),
        // This network, loopback, multicast, reserved and broadcast.
        (0 | 127 | 224..=255, ..)
            // Behind the NAT of a carrier, and benchmarks.
            | (100, 64..=127, _) | (198, 18 | 19, _)
            // Protocol assignments, and 6to4 relays.
            | (192, 0, 0) | (192, 88, 99)
    );
    !(is_special || v4.is_private() || v4.is_link_local() || v4.is_documentation())
}

/// Only global unicast, without what is embedded in it: tunnels, translated private addresses and
/// documentation.
fn is_public_v6(v6: Ipv6Addr) -> bool {
    match v6.segments() {
        // NAT64 and 6to4 reach the IPv4 address in them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // Teredo and other assignments of IETF protocols, and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Resolves names like the system does, and leaves out addresses that are not public.
#[derive(Clone, Debug)]
pub(crate) struct PublicResolver {
    system: GaiResolver,
    allows_private: bool,
}

impl PublicResolver {
    pub(crate) fn new(allows_private: bool) -> Self {
        Self { system: GaiResolver::new(), allows_private }
    }
}

type ResolverFuture = Pin<Box<dyn Future<Output = io::Result<std::vec::IntoIter<SocketAddr>>> + Send>>;

impl Service<Name> for PublicResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = ResolverFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allows_private = self.allows_private;
        let resolving = self.system.call(name);
        Box::pin(async move {
            let found = resolving.await?;
            let usable: Vec<SocketAddr> =
                found.filter(|address| allows_private || is_public(address.ip())).collect();
            if usable.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::AddrNotAvailable,
                    "its host has no public address",
                ));
            }
            Ok(usable.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:a00:1::",
            "2002:7f00:1::",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "::7f00:1",
            "3fff::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_with_private_addresses_resolves_only_where_they_are_allowed() {
        let name = || "localhost".parse::<Name>().unwrap();
        let refused = PublicResolver::new(false).call(name()).await.unwrap_err();
        assert!(refused.to_string().contains("no public address"), "{refused}");
        assert!(PublicResolver::new(true).call(name()).await.unwrap().next().is_some());
    }
}
