//! The minimum that makes a POST happen once on Redis: a claim with `SET NX`, the handler, the
//! response with `SET`. No fingerprint, no lease renewal, no stored headers: a lower bound for
//! comparison, not for use.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use redis::aio::MultiplexedConnection;

/// Bytes of the largest response.
const ANSWER_MAX: usize = 1 << 20;

#[derive(Clone)]
struct Claims {
    redis: MultiplexedConnection,
    keep_ms: u64,
    /// Keeps its keys apart from all others.
    prefix: String,
}

pub(crate) async fn layered(service: Router, url: &str, keep_s: u64) -> Result<Router, String> {
    // The driver's message may contain the URL, and with it a password.
    let client = redis::Client::open(url).map_err(|_| "the store's URL is none that Redis has")?;
    let redis = client.get_multiplexed_async_connection().await.map_err(|error| error.to_string())?;
    let claims =
        Claims { redis, keep_ms: keep_s * 1_000, prefix: format!("tidegate-peer:{}:", std::process::id()) };
    Ok(service.layer(from_fn_with_state(claims, once)))
}

async fn once(State(claims): State<Claims>, request: Request, next: Next) -> Response {
    let Some(key) = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return next.run(request).await;
    };
    let name = format!("{}{key}", claims.prefix);
    claims
        .answer(&name, request, next)
        .await
        .unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

impl Claims {
    async fn answer(
        mut self,
        name: &str,
        request: Request,
        next: Next,
    ) -> Result<Response, redis::RedisError> {
        let mut claim = redis::cmd("SET");
        claim.arg(name).arg("").arg("NX").arg("PX").arg(self.keep_ms);
        let claimed: Option<String> = claim.query_async(&mut self.redis).await?;
        if claimed.is_none() {
            let kept: Option<Vec<u8>> = redis::cmd("GET").arg(name).query_async(&mut self.redis).await?;
            return Ok(kept
                .as_deref()
                .and_then(repeated)
                .unwrap_or_else(|| StatusCode::CONFLICT.into_response()));
        }
        let (parts, body) = next.run(request).await.into_parts();
        let Ok(body) = to_bytes(body, ANSWER_MAX).await else {
            return Ok(StatusCode::BAD_GATEWAY.into_response());
        };
        let mut kept = parts.status.as_u16().to_be_bytes().to_vec();
        kept.extend_from_slice(&body);
        let mut keep = redis::cmd("SET");
        keep.arg(name).arg(kept).arg("PX").arg(self.keep_ms);
        let _: () = keep.query_async(&mut self.redis).await?;
        Ok(Response::from_parts(parts, Body::from(body)))
    }
}

/// Returns the stored response; `None` while there is none yet.
fn repeated(kept: &[u8]) -> Option<Response> {
    let (status, body) = kept.split_first_chunk::<2>()?;
    let status = StatusCode::from_u16(u16::from_be_bytes(*status)).ok()?;
    Some((status, [(header::CONTENT_TYPE, "application/json")], body.to_vec()).into_response())
}
