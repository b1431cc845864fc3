//! The client's address behind proxies (L2).

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Whom a request comes from: the peer, unless that is a trusted proxy.
///
/// Each proxy appends the address that it saw, so `X-Forwarded-For` is walked from the right for as
/// long as the hops are trusted; what stands further left anybody may have written.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    for hop in hops_from_the_right(headers) {
        if !trusted.iter().any(|network| network.contains(&client)) {
            break;
        }
        let Some(address) = hop else { break };
        client = address;
    }
    client
}

/// `None` is a hop that cannot be read.
fn hops_from_the_right(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    headers
        .get_all(FORWARDED_FOR)
        .iter()
        .rev()
        .flat_map(|line| line.to_str().unwrap_or_default().rsplit(','))
        .map(|hop| parse_hop(hop.trim()))
}

/// Some proxies add the port.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let address = bare.parse().ok();
    let with_port = || hop.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    address.or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn nobody_is_believed_by_default() {
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &[]), "192.0.2.1");
        assert_eq!(client("192.0.2.1", &["203.0.113.9"], &["10.0.0.0/8"]), "192.0.2.1");
    }

    #[test]
    fn a_trusted_proxy_says_whom_it_saw() {
        let proxies = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client("10.0.0.1", &["203.0.113.9"], &proxies), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["203.0.113.9, 10.0.0.2"], &proxies), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["203.0.113.9", "10.0.0.2"], &proxies), "203.0.113.9");
        assert_eq!(client("fd00::1", &["2001:db8::9"], &proxies), "2001:db8::9");
        assert_eq!(client("::ffff:10.0.0.1", &["203.0.113.9"], &proxies), "203.0.113.9");
    }

    #[test]
    fn what_a_client_wrote_itself_is_not_reached() {
        let forged = "198.51.100.7, 203.0.113.9, 10.0.0.2";
        assert_eq!(client("10.0.0.1", &[forged], &["10.0.0.0/8"]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["198.51.100.7, nonsense"], &["10.0.0.0/8"]), "10.0.0.1");
    }

    #[test]
    fn without_the_header_the_proxy_is_the_client() {
        assert_eq!(client("10.0.0.1", &[], &["10.0.0.0/8"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["10.0.0.2"], &["10.0.0.0/8"]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[""], &["10.0.0.0/8"]), "10.0.0.1");
    }

    #[test]
    fn ports_and_brackets_are_read() {
        let seen = |hop| client("10.0.0.1", &[hop], &["10.0.0.0/8"]);
        assert_eq!(seen("203.0.113.9:4711"), "203.0.113.9");
        assert_eq!(seen("[2001:db8::9]:4711"), "2001:db8::9");
        assert_eq!(seen("[2001:db8::9]"), "2001:db8::9");
    }
}
