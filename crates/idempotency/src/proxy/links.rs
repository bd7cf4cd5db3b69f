//! Links of a service to itself, in `Location` and `Link`. A client that followed one by the
//! service's own address would go past the proxy, or to a path that does not exist there. A link is
//! rewritten to a path of the proxy without a host, so that it suits whoever gets the stored
//! response later.

use http::header::{LINK, LOCATION};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

use super::upstream::ProxyUpstream;

/// Rewrites the references of `Location` and `Link`; `None` leaves one as it is.
pub fn rewrite_references(headers: &mut HeaderMap, change: impl Fn(&str) -> Option<String>) {
    let rewrite = |value: &HeaderValue, change: &dyn Fn(&str) -> Option<String>| {
        HeaderValue::from_str(&change(value.to_str().ok()?)?).ok()
    };
    if let Some(location) = headers.get(LOCATION).and_then(|value| rewrite(value, &change)) {
        headers.insert(LOCATION, location);
    }
    let in_link = |text: &str| Some(rewrite_link_header(text, &change));
    let links = headers.get_all(LINK).iter();
    let links: Vec<_> =
        links.map(|value| rewrite(value, &in_link).unwrap_or_else(|| value.clone())).collect();
    headers.remove(LINK);
    for link in links {
        headers.append(LINK, link);
    }
}

/// Rewrites all references between `<` and `>` of a `Link` header.
fn rewrite_link_header(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let (mut changed, mut rest, mut in_quotes) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find(['<', '"']) {
        let (before, found) = rest.split_at(at);
        changed.push_str(before);
        if found.starts_with('"') {
            in_quotes = !in_quotes;
        } else if !in_quotes && let Some(end) = found.find('>') {
            let reference = &found[1..end];
            changed.push('<');
            changed.push_str(change(reference).as_deref().unwrap_or(reference));
            rest = &found[end..];
            continue;
        }
        changed.push_str(&found[..1]);
        rest = &found[1..];
    }
    changed.push_str(rest);
    changed
}

impl ProxyUpstream {
    /// The path at the proxy of a reference below this upstream; `None` for any other reference,
    /// and for one that is right as it is.
    pub(super) fn own_path(&self, reference: &str) -> Option<String> {
        let (authority, path) = match reference.split_once("//") {
            Some((scheme, rest)) if scheme.is_empty() || self.is_scheme(scheme) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                (Some(authority.parse::<Authority>().ok()?), path)
            }
            _ if reference.starts_with('/') => (None, reference),
            // Of another service, or relative to the path of the request.
            _ => return None,
        };
        if authority.as_ref().is_some_and(|authority| !self.is_authority(authority)) {
            return None;
        }
        let below = path.strip_prefix(self.prefix.as_str())?;
        if !below.is_empty() && !below.starts_with(['/', '?', '#']) {
            return None;
        }
        let slash = if below.starts_with('/') { "" } else { "/" };
        let own = format!("{slash}{below}");
        // Two slashes at the beginning would name a host.
        (own != reference && !own.starts_with("//")).then_some(own)
    }

    fn is_scheme(&self, scheme: &str) -> bool {
        scheme.strip_suffix(':').is_some_and(|scheme| scheme.eq_ignore_ascii_case(self.scheme.as_str()))
    }

    fn is_authority(&self, other: &Authority) -> bool {
        let default = if self.is_tls() { 443 } else { 80 };
        let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
        other.host().eq_ignore_ascii_case(self.authority.host()) && port(other) == port(&self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-12: a link below the service's URL is a path at the proxy; any other stays.
    #[test]
    fn idm_12_links_to_the_service_are_paths_of_the_proxy() {
        let at = |url: &str, reference: &str| {
            let upstream = ProxyUpstream::from_url(url).unwrap();
            upstream.own_path(reference).unwrap_or_else(|| reference.to_owned())
        };
        for (reference, wanted) in [
            ("http://h:1/base/orders/7?a=b#c", "/orders/7?a=b#c"),
            ("HTTP://H:1/base", "/"),
            ("http://h:1/base?page=2", "/?page=2"),
            ("//h:1/base/x", "/x"),
            ("/base/orders/7", "/orders/7"),
            ("http://h:1/other", "http://h:1/other"),
            ("http://h:1/basement", "http://h:1/basement"),
            ("http://h:2/base/x", "http://h:2/base/x"),
            ("https://h:1/base/x", "https://h:1/base/x"),
            ("http://h:1/base//evil/x", "http://h:1/base//evil/x"),
            ("/other", "/other"),
            ("../x", "../x"),
            ("mailto:a@h", "mailto:a@h"),
            ("", ""),
        ] {
            assert_eq!(at("http://h:1/base", reference), wanted, "{reference}");
        }
        for (url, reference, wanted) in [
            ("http://h", "http://h:80/x", "/x"),
            ("https://h", "https://h/x", "/x"),
            ("https://h:443", "https://h", "/"),
            ("http://h", "/x", "/x"),
            ("http://h", "//evil/x", "//evil/x"),
            ("http://h", "http://user@h/x", "/x"),
        ] {
            assert_eq!(at(url, reference), wanted, "{url} {reference}");
        }
    }
}
