//! A bucket on loopback that verifies signatures by itself, from the request as it arrived, with
//! other libraries than the ones that make them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Method, StatusCode};
use sha2::{Digest as _, Sha256};
use tidegate_core::Time;

pub(super) const ACCESS_KEY_ID: &str = "AKIDEXAMPLE";
pub(super) const SECRET: &str = "hunter2/of+the+bucket";
pub(super) const REGION: &str = "eu-west-3";
pub(super) const BUCKET: &str = "results";

/// How far the time of a request may be from the bucket's.
const SKEW_MAX: Duration = Duration::from_secs(15 * 60);
const BODY_LEN_MAX: usize = 80 * 1024 * 1024;

/// What happens to the next request.
#[derive(Clone, Copy, Debug)]
pub(super) enum BucketFault {
    /// It fails with this status, before anything is stored.
    Status(u16),
    /// Its response comes too late; a PUT has taken effect.
    Silence,
}

pub(super) struct Bucket {
    pub now: Time,
    pub objects: Mutex<BTreeMap<String, (String, Bytes)>>,
    pub faults: Mutex<VecDeque<BucketFault>>,
    pub requests: Mutex<usize>,
}

type Refusal = (u16, &'static str);

impl Bucket {
    pub(super) async fn start(now: Time) -> (Arc<Self>, String) {
        let bucket =
            Self { now, objects: Mutex::default(), faults: Mutex::default(), requests: Mutex::default() };
        let bucket = Arc::new(bucket);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&bucket));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (bucket, endpoint)
    }

    fn serve(&self, method: &Method, path: &str, headers: &HeaderMap, body: Bytes) -> Response {
        if let Err((status, code)) = verify(method.as_str(), path, headers, &body, self.now) {
            return error(status, code);
        }
        let Some(key) = path.strip_prefix(&format!("/{BUCKET}/")) else { return error(404, "NoSuchBucket") };
        let mut objects = self.objects.lock().unwrap();
        match *method {
            Method::PUT => {
                let kind = headers["content-type"].to_str().unwrap().to_owned();
                objects.insert(key.to_owned(), (kind, body));
                StatusCode::OK.into_response()
            }
            Method::GET => match objects.get(key) {
                Some((kind, bytes)) => ([("content-type", kind.clone())], bytes.clone()).into_response(),
                None => error(404, "NoSuchKey"),
            },
            _ => error(405, "MethodNotAllowed"),
        }
    }
}

async fn answer(State(bucket): State<Arc<Bucket>>, request: Request) -> Response {
    *bucket.requests.lock().unwrap() += 1;
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_LEN_MAX).await.unwrap();
    let fault = bucket.faults.lock().unwrap().pop_front();
    if let Some(BucketFault::Status(status)) = fault {
        return error(status, "InternalError");
    }
    let response = bucket.serve(&head.method, head.uri.path(), &head.headers, body);
    if fault.is_some() {
        std::future::pending::<()>().await;
    }
    response
}

fn error(status: u16, code: &str) -> Response {
    let body = format!("<Error><Code>{code}</Code><Message>It is {code}.</Message></Error>");
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The value of `name=` in the list of an `Authorization` header.
fn field<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(',').find_map(|item| item.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Verifies a request as S3 does.
pub(super) fn verify(
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: Time,
) -> Result<(), Refusal> {
    let denied = (403, "AccessDenied");
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = header("authorization").ok_or(denied)?;
    let list = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or(denied)?;
    let [credential, names, signature] =
        ["Credential", "SignedHeaders", "Signature"].map(|name| field(list, name).unwrap_or_default());
    let (id, scope) = credential.split_once('/').ok_or(denied)?;
    if id != ACCESS_KEY_ID {
        return Err((403, "InvalidAccessKeyId"));
    }
    let timestamp = header("x-amz-date").ok_or(denied)?;
    let digits: Vec<&str> = [0..4, 4..6, 6..8, 9..11, 11..13, 13..15]
        .into_iter()
        .map(|range| timestamp.get(range).unwrap_or_default())
        .collect();
    let [year, month, day, hour, minute, second] = digits[..] else { return Err(denied) };
    let at =
        Time::parse_rfc_3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok_or(denied)?;
    if at.since(now).max(now.since(at)) > SKEW_MAX {
        return Err((403, "RequestTimeTooSkewed"));
    }
    let date = &timestamp[..8];
    if scope != format!("{date}/{REGION}/s3/aws4_request") {
        return Err((400, "AuthorizationHeaderMalformed"));
    }
    let signed: Vec<&str> = names.split(';').collect();
    let must_be_signed = |name: &str| name == "host" || name == "content-type" || name.starts_with("x-amz-");
    if headers.keys().any(|name| must_be_signed(name.as_str()) && !signed.contains(&name.as_str())) {
        return Err(denied);
    }
    let lines: String =
        signed.iter().map(|name| format!("{name}:{}\n", header(name).unwrap_or_default())).collect();
    let content = header("x-amz-content-sha256").ok_or(denied)?;
    let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{content}");
    let canonical = hex(&Sha256::digest(canonical));
    let to_sign = format!("AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{canonical}");
    let key = [date, REGION, "s3", "aws4_request"]
        .iter()
        .fold(format!("AWS4{SECRET}").into_bytes(), |key, part| mac(&key, part));
    if hex(&mac(&key, &to_sign)) != signature {
        return Err((403, "SignatureDoesNotMatch"));
    }
    if hex(&Sha256::digest(body)) != content {
        return Err((400, "XAmzContentSHA256Mismatch"));
    }
    Ok(())
}
