//! The pseudonym that a proxy adds to `Via`, by which it recognises its own requests when they come
//! back. It is new with every start and reveals nothing about the machine.

use http::header::{HOST, VIA};
use http::{HeaderMap, HeaderValue, Version};

use super::proxy_error::ProxyError;
use super::upstream::ProxyUpstreamError;

/// The pseudonym of one proxy.
#[derive(Clone, Debug)]
pub(super) struct Pseudonym(String);

impl Pseudonym {
    pub(super) fn new() -> Result<Self, ProxyUpstreamError> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|_| ProxyUpstreamError::NoRandom)?;
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("tidegate-{hex}")))
    }

    /// Returns whether a message with these headers has passed this proxy before.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(VIA).into_iter().filter_map(|line| line.to_str().ok());
        let mut hops = lines.flat_map(|line| line.split(','));
        hops.any(|hop| hop.split_whitespace().nth(1) == Some(&self.0))
    }

    /// Appends the pseudonym to the `Via` header.
    pub(super) fn sign(&self, headers: &mut HeaderMap, version: Version) {
        let spoken = match version {
            Version::HTTP_2 => "2.0",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        };
        if let Ok(hop) = HeaderValue::from_str(&format!("{spoken} {}", self.0)) {
            headers.append(VIA, hop);
        }
    }
}

/// Why a request is not processed any further, if there is a reason.
pub(super) fn early_rejection(own: &Pseudonym, headers: &HeaderMap, version: Version) -> Option<ProxyError> {
    if own.is_in(headers) {
        return Some(ProxyError::Loop);
    }
    let hosts = headers.get_all(HOST).iter().count();
    (version == Version::HTTP_11 && hosts != 1).then_some(ProxyError::NoHost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-12: a pseudonym is found anywhere in the list, and only as a whole.
    #[test]
    fn a_proxy_knows_its_own_name() {
        let own = Pseudonym("tidegate-0a".into());
        let has = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(VIA, HeaderValue::from_static(line));
            }
            own.is_in(&headers)
        };
        assert!(has(&["1.1 tidegate-0a"]) && has(&["1.0 a, 2.0 tidegate-0a (x), 1.1 b"]));
        assert!(has(&["1.1 a", "HTTP/1.1 tidegate-0a"]));
        assert!(!has(&[]) && !has(&["1.1 tidegate-0ab, tidegate-0a", "1.1 a (tidegate-0a)"]));
        let mut headers = HeaderMap::new();
        headers.append(VIA, HeaderValue::from_static("1.1 a"));
        own.sign(&mut headers, Version::HTTP_11);
        let all: Vec<_> = headers.get_all(VIA).iter().collect();
        assert_eq!(all, ["1.1 a", "1.1 tidegate-0a"]);
    }
}
