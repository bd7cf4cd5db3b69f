//! Parses the address of a call: which shop, which version, and whether it is GraphQL or REST. A
//! shop is named by the host, by the path or, when neither does, by the token; a call without a
//! token belongs to no shop.

use bytes::Bytes;
use hyper::Request;
use hyper::header::HOST;
use tidegate_core::fingerprint::Fingerprint;

use super::version::Version;

/// Longest name of a shop.
const SHOP_LEN_MAX: usize = 100;

/// The address of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// The shop.
    pub shop: String,
    /// The requested version; `None` leaves it to the server.
    pub version: Option<Version>,
    /// The API and resource.
    pub target: ApiTarget,
}

/// The API and resource of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum ApiTarget {
    /// The GraphQL endpoint.
    Graphql,
    /// A REST resource: its path without `.json`.
    Rest(String),
}

/// An invalid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It has no token.
    NoToken,
    /// There is nothing at that path.
    NotFound,
}

impl ApiAddress {
    /// Parses the address of a request.
    ///
    /// # Errors
    /// When the address is invalid.
    pub fn of(request: &Request<Bytes>) -> Result<Self, AddressError> {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let token = header("x-shopify-access-token").filter(|token| !token.trim().is_empty());
        let path = request.uri().path();
        let (in_path, path) = match path.strip_prefix("/shops/").and_then(|rest| rest.split_once('/')) {
            Some((shop, rest)) => (Some(shop), rest),
            None => (None, path.trim_start_matches('/')),
        };
        let (version, target) = target(path.strip_prefix("admin/api/").ok_or(AddressError::NotFound)?)?;
        let token = token.ok_or(AddressError::NoToken)?;
        let host = request.uri().host().or_else(|| header(HOST.as_str()));
        let shop = match host.and_then(shop_in_host).or_else(|| in_path.map(normalize_shop)) {
            Some(shop) if is_shop(&shop) => shop,
            Some(_) => return Err(AddressError::NotFound),
            None => shop_of_token(token),
        };
        Ok(Self { shop, version, target })
    }
}

/// Derives the name of a shop that has none but its token, which stays secret.
fn shop_of_token(token: &str) -> String {
    let hash = Fingerprint::of("sim shopify token").part(token.as_bytes()).short();
    format!("token-{:012x}", hash & 0xffff_ffff_ffff)
}

/// Normalizes the name of a shop.
#[must_use]
pub fn normalize_shop(shop: &str) -> String {
    let shop = shop.trim().to_ascii_lowercase();
    shop.strip_suffix(".myshopify.com").map_or(shop.clone(), str::to_owned)
}

/// Returns whether a text is a valid shop name.
#[must_use]
pub fn is_shop(shop: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !shop.is_empty() && shop.len() <= SHOP_LEN_MAX && !shop.starts_with('-') && shop.bytes().all(fits)
}

fn shop_in_host(host: &str) -> Option<String> {
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let labels = host.strip_suffix(".myshopify.com")?;
    Some(labels.split('.').next().unwrap_or_default().to_owned())
}

fn target(path: &str) -> Result<(Option<Version>, ApiTarget), AddressError> {
    let (version, rest) = match path.split_once('/') {
        Some((first, rest)) if first.starts_with(|c: char| c.is_ascii_digit()) || first == "unstable" => {
            (Some(first.parse().map_err(|_| AddressError::NotFound)?), rest)
        }
        _ => (None, path),
    };
    let resource =
        rest.strip_suffix(".json").filter(|rest| !rest.is_empty()).ok_or(AddressError::NotFound)?;
    let target =
        if resource == "graphql" { ApiTarget::Graphql } else { ApiTarget::Rest(resource.to_owned()) };
    Ok((version, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, path: &str, token: Option<&str>) -> Result<ApiAddress, AddressError> {
        let mut request = Request::builder().method("POST").uri(path).header("host", host);
        if let Some(token) = token {
            request = request.header("x-shopify-access-token", token);
        }
        ApiAddress::of(&request.body(Bytes::new()).unwrap())
    }

    fn shop(host: &str, path: &str) -> String {
        address(host, path, Some("t")).unwrap().shop
    }

    #[test]
    fn a_shop_is_named_by_host_then_path_then_token() {
        let plain = "/admin/api/2026-04/graphql.json";
        assert_eq!(shop("Acme.myshopify.com:8080", plain), "acme");
        assert_eq!(shop("127.0.0.1:1", "/shops/Bolt.myshopify.com/admin/api/2026-04/graphql.json"), "bolt");
        assert_eq!(shop("acme.myshopify.com", "/shops/bolt/admin/api/2026-04/graphql.json"), "acme");
        let by_token = shop("localhost", plain);
        assert!(by_token.starts_with("token-") && is_shop(&by_token), "{by_token}");
        assert_ne!(by_token, address("localhost", plain, Some("u")).unwrap().shop);
        assert_eq!(
            address("127.0.0.1", "/shops/a_b/admin/api/2026-04/graphql.json", Some("t")),
            Err(AddressError::NotFound)
        );
    }

    #[test]
    fn a_call_needs_a_token_and_a_place() {
        let path = "/admin/api/2026-04/graphql.json";
        for token in [None, Some(""), Some(" ")] {
            assert_eq!(address("acme.myshopify.com", path, token), Err(AddressError::NoToken));
        }
        for path in
            ["/", "/admin", "/admin/api/2026-02/graphql.json", "/admin/api/2026-04/products", "/shops/a/x"]
        {
            assert_eq!(address("acme.myshopify.com", path, Some("t")), Err(AddressError::NotFound), "{path}");
        }
    }

    #[test]
    fn the_version_and_the_resource_are_in_the_path() {
        let of =
            |path: &str| address("a.myshopify.com", path, Some("t")).map(|a| (a.version, a.target)).unwrap();
        let rest = |path: &str| ApiTarget::Rest(path.to_owned());
        let version = Some("2026-04".parse().unwrap());
        assert_eq!(of("/admin/api/2026-04/graphql.json"), (version, ApiTarget::Graphql));
        assert_eq!(of("/admin/api/2026-04/products/1/images.json"), (version, rest("products/1/images")));
        assert_eq!(of("/admin/api/graphql.json"), (None, ApiTarget::Graphql));
        assert_eq!(of("/admin/api/products/1.json"), (None, rest("products/1")));
    }
}
