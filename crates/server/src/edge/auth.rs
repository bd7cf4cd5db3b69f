//! Authentication and authorization. Tokens are compared by their hashes in constant time; if none
//! is configured, only this machine is served. A browser may send the token in the cookie of its
//! login or as a password, and a client of the paced proxy in the header of the upstream's own
//! credential.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Extension;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::login;
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
    /// The name of a caller on this machine, where no tokens tell callers apart.
    pub(crate) const LOCAL: &str = "local";

    pub(crate) fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

/// The tenant that the token of a caller belongs to.
#[derive(Clone, Debug)]
pub(crate) struct CallerTenant(pub Arc<str>);

impl CallerTenant {
    fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

/// The tenant of a request: the one that it names, or the one that the caller's token belongs to,
/// which may name no other.
pub(crate) fn tenant_of(
    named: Option<String>,
    caller: Option<&Extension<CallerTenant>>,
) -> Result<Option<String>> {
    match (named, caller) {
        (named, None) => Ok(named),
        (Some(named), Some(Extension(CallerTenant(own)))) if named != **own => {
            let message = format!("The token belongs to the tenant {own:?}, and may name no other.");
            Err(Error::new(ErrorCode::Forbidden, message))
        }
        (_, Some(Extension(CallerTenant(own)))) => Ok(Some(own.to_string())),
    }
}

/// Admits callers on this machine, if there are no tokens.
pub(crate) fn admit_local(peer: Option<PeerAddr>) -> Result<Caller> {
    let refuse =
        || Error::new(ErrorCode::Forbidden, "Without a token only calls from this machine are served.");
    peer.is_some_and(PeerAddr::is_local).then(|| Caller::named(Caller::LOCAL)).ok_or_else(refuse)
}

/// Admits a caller whose token has the scope.
pub(crate) fn admit(
    server: &ServerState,
    scope: TokenScope,
    peer: Option<PeerAddr>,
    path: &str,
    headers: &HeaderMap,
) -> Result<(Caller, Option<CallerTenant>)> {
    if !server.tokens.are_required() {
        return Ok((admit_local(peer)?, None));
    }
    let credential = credential(headers)
        .or_else(|| login::token_in_cookie(headers).filter(|text| text.len() <= CREDENTIAL_LEN_MAX))
        .or_else(|| server.pacing.credential(path, headers).filter(|text| text.len() <= CREDENTIAL_LEN_MAX))
        .ok_or_else(|| Error::new(ErrorCode::Unauthorized, "Send a token: Authorization: Bearer …"))?;
    let token = verify(server, peer, &credential)?;
    if token.scopes.contains(&scope) {
        return Ok((Caller::named(&token.name), token.tenant.as_deref().map(CallerTenant::named)));
    }
    let message = format!("The token {:?} does not have the scope {:?}.", token.name, scope.as_str());
    Err(Error { scope: Some(scope), ..Error::new(ErrorCode::Forbidden, message) })
}

/// Finds the token of a credential. An address that sent too many wrong ones has to wait, whatever
/// it sends: otherwise it could keep trying.
pub(super) fn verify(
    server: &ServerState,
    peer: Option<PeerAddr>,
    credential: &str,
) -> Result<Arc<ApiToken>> {
    let address = peer.map(|PeerAddr(peer)| peer.ip());
    if let Some(wait) = address.and_then(|address| server.auth_failures.check(address).err()) {
        count_failure("blocked");
        let message = "This address sent too many wrong tokens, and has to wait before it sends another.";
        return Err(Error::new(ErrorCode::Unauthorized, message).retry_after(Some(wait)));
    }
    let (reason, message) = match server.tokens.find(credential) {
        Some(token) if !token.is_expired(server.clock.now()) => return Ok(token),
        Some(token) => ("expired", format!("The token {:?} has expired.", token.name)),
        None => ("unknown", "This token is unknown.".to_owned()),
    };
    count_failure(reason);
    if let Some(address) = address.filter(|address| server.auth_failures.count(*address)) {
        tracing::warn!(%address, "an address sent too many wrong tokens, and has to wait");
    }
    Err(Error::new(ErrorCode::Unauthorized, message))
}

fn count_failure(reason: &'static str) {
    metrics::counter!("tidegate_auth_failures_total", "reason" => reason).increment(1);
}

/// Whether a caller that was admitted has this scope as well: all tokens of its name have it.
pub(crate) fn has_scope(server: &ServerState, caller: &Caller, scope: TokenScope) -> bool {
    !server.tokens.are_required() || server.tokens.have_scope(&caller.0, scope)
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
