//! Authentication and authorization. Tokens are compared by their hashes in constant time; if none
//! is configured, only this machine is served. A browser may send the token as the password of its
//! login form, and a client of the paced proxy in the header of the upstream's own credential.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::config::{ApiToken, TokenScope};
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;

/// The longest credential that is checked, in bytes.
const CREDENTIAL_LEN_MAX: usize = 1_024;

/// The remote address of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddr(pub SocketAddr);

impl PeerAddr {
    /// Whether it is this machine.
    pub(crate) fn is_local(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

/// The name of the caller, for the log and for pauses.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub Arc<str>);

impl Caller {
    pub(crate) fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

/// Admits callers on this machine, if there are no tokens.
pub(crate) fn admit_local(peer: Option<PeerAddr>) -> Result<Caller> {
    let refuse =
        || Error::new(ErrorCode::Forbidden, "Without a token only calls from this machine are served.");
    peer.is_some_and(PeerAddr::is_local).then(|| Caller::named("local")).ok_or_else(refuse)
}

pub(crate) fn admit(
    server: &ServerState,
    scope: TokenScope,
    peer: Option<PeerAddr>,
    path: &str,
    headers: &HeaderMap,
) -> Result<Caller> {
    if server.tokens.is_empty() {
        return admit_local(peer);
    }
    let credential = credential(headers)
        .or_else(|| server.pacing.credential(path, headers).filter(|text| text.len() <= CREDENTIAL_LEN_MAX))
        .ok_or_else(|| Error::new(ErrorCode::Unauthorized, "Send a token: Authorization: Bearer …"))?;
    let token = find(&server.tokens, &credential)
        .ok_or_else(|| Error::new(ErrorCode::Unauthorized, "This token is unknown."))?;
    if token.scopes.contains(&scope) {
        return Ok(Caller::named(&token.name));
    }
    let message = format!("The token {:?} does not have the scope {:?}.", token.name, scope.as_str());
    Err(Error::new(ErrorCode::Forbidden, message))
}

/// Whether a caller that was admitted has this scope as well: all tokens of its name have it.
pub(crate) fn has_scope(server: &ServerState, caller: &Caller, scope: TokenScope) -> bool {
    let mut named = server.tokens.iter().filter(|token| *token.name == *caller.0).peekable();
    server.tokens.is_empty() || (named.peek().is_some() && named.all(|token| token.scopes.contains(&scope)))
}

fn credential(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().filter(|text| text.len() <= CREDENTIAL_LEN_MAX)?;
    let (scheme, rest) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let login = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
        // Some clients send a token as the user, without a password.
        let token =
            |(user, password): (&str, &str)| if password.is_empty() { user } else { password }.to_owned();
        return login.split_once(':').map(token);
    }
    None
}

/// Finds the token of a credential. Every hash is compared in full, so the time reveals nothing
/// about a near match.
fn find<'a>(tokens: &'a [ApiToken], credential: &str) -> Option<&'a ApiToken> {
    let hash: [u8; 32] = Sha256::digest(credential.as_bytes()).into();
    let mut found = u64::MAX;
    for (place, token) in (0_u64..).zip(tokens) {
        let same: Choice = hash.ct_eq(&token.hash);
        found.conditional_assign(&place, same);
    }
    usize::try_from(found).ok().and_then(|place| tokens.get(place))
}
