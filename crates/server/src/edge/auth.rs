//! Who may do what. Tokens are compared by their hashes in constant time; with none configured only this machine is
//! served. A browser may send the token as the password of its login form, and a client of the proxy in the header of the
//! upstream's own credential.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tidegate::{Code, Error, Result};
use tidegate_idempotency::HEADER;

use crate::app::House;
use crate::config::{Scope, Token};
use crate::wire::failure::Failure;

/// Longest credential that is looked at, in bytes.
const CREDENTIAL_LEN_MAX: usize = 1_024;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// Who calls, for the log and for who paused what.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub Arc<str>);

/// What a layer needs: the scope that its routes ask for, and whether a key may let a request happen once.
#[derive(Clone)]
pub(crate) struct Needs {
    pub house: Arc<House>,
    pub scope: Scope,
    /// Largest body of a request with an idempotency key, where one may be sent.
    pub keyed_max: Option<usize>,
}

pub(crate) async fn layer(State(needs): State<Needs>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    match admit(&needs.house, needs.scope, peer, request.uri().path(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            match needs.keyed_max {
                Some(most) if request.headers().contains_key(HEADER) => {
                    super::once::run(&needs.house, most, request, next).await
                }
                _ => next.run(request).await,
            }
        }
        Err(error) => Failure(error).into_response(),
    }
}

fn admit(house: &House, scope: Scope, peer: Option<Peer>, path: &str, headers: &HeaderMap) -> Result<Caller> {
    if house.tokens.is_empty() {
        let local = peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
        let refuse =
            || Error::new(Code::Forbidden, "Without a token only calls from this machine are served.");
        return local.then(|| Caller(Arc::from("local"))).ok_or_else(refuse);
    }
    let credential = credential(headers)
        .or_else(|| house.pacing.credential(path, headers).filter(|text| text.len() <= CREDENTIAL_LEN_MAX))
        .ok_or_else(|| Error::new(Code::Unauthorized, "Send a token: Authorization: Bearer …"))?;
    let token = find(&house.tokens, &credential)
        .ok_or_else(|| Error::new(Code::Unauthorized, "This token is not known here."))?;
    if token.scopes.contains(&scope) {
        return Ok(Caller(Arc::from(token.name.as_str())));
    }
    let message = format!("The token {:?} does not have the scope {:?}.", token.name, scope.as_str());
    Err(Error::new(Code::Forbidden, message))
}

fn credential(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().filter(|text| text.len() <= CREDENTIAL_LEN_MAX)?;
    let (scheme, rest) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let login = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
        return login.split_once(':').map(|(_, password)| password.to_owned());
    }
    None
}

/// Every hash is compared with every other bit of work, so the time tells nothing about which one came near.
fn find<'a>(tokens: &'a [Token], credential: &str) -> Option<&'a Token> {
    let hash: [u8; 32] = Sha256::digest(credential.as_bytes()).into();
    let mut found = u64::MAX;
    for (place, token) in (0_u64..).zip(tokens) {
        let same: Choice = hash.ct_eq(&token.hash);
        found.conditional_assign(&place, same);
    }
    usize::try_from(found).ok().and_then(|place| tokens.get(place))
}
