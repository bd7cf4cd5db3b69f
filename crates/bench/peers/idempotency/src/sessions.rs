//! axum-idempotent with its in-memory store. It keeps responses in a session that a cookie names,
//! and each write scans the whole session: the load gives every key a session of its own, which is
//! its best case.

use std::sync::Arc;

use axum::Router;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

/// Most sessions kept: more than a run has, so that none is dropped and every replay is a replay.
const SESSIONS_MAX: u64 = 50_000_000;

pub(crate) fn layered(service: Router, keep_s: u64) -> Router {
    let store = Arc::new(MokaStore::builder().max_capacity(SESSIONS_MAX).build());
    let cookie = CookieOptions::build().name("session").max_age(keep_s).path("/");
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(None, false)
        .expire_after(i64::try_from(keep_s).unwrap_or(i64::from(i32::MAX)));
    service
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}
