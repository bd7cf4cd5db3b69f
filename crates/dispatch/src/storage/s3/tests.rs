//! Objects in a bucket on loopback that verifies every signature: stored, read, refused, and sent
//! again after faults.

mod bucket;

use http::{HeaderMap, HeaderName};
use tidegate_contract::ManualClock;
use tidegate_upstream::Secret;

use super::*;
use bucket::{ACCESS_KEY_ID, BUCKET, Bucket, BucketFault, REGION, SECRET, verify};

const MINUTE: Duration = Duration::from_secs(60);
const PNG: Bytes = Bytes::from_static(b"\x89PNG\r\n\x1a\n and so on");

fn now() -> Time {
    Time::parse_rfc_3339("2026-11-17T09:05:07Z").unwrap()
}

fn config(endpoint: &str) -> S3Config {
    S3Config {
        endpoint: endpoint.into(),
        region: REGION.into(),
        bucket: BUCKET.into(),
        addressing: S3Addressing::Path,
        access_key_id: ACCESS_KEY_ID.into(),
        secret_access_key: Secret::new(SECRET),
    }
}

fn open(config: &S3Config, at: Time) -> S3Storage {
    S3Storage::with_times(config, ManualClock::at(at), Duration::from_millis(500), Duration::from_millis(1))
        .unwrap()
}

async fn refusal(storage: &S3Storage) -> (u16, String) {
    let put = storage.put("a", "image/png", PNG).await.unwrap_err();
    let message = put.to_string();
    assert!(!message.contains("hunter2") && !message.contains(ACCESS_KEY_ID), "{message}");
    match put {
        StorageError::Refused { status, code, .. } => (status, code),
        other => panic!("{other}"),
    }
}

/// DSP-20: an object comes back as it was stored; storing it again is harmless.
#[tokio::test]
async fn dsp_20_a_file_is_kept_in_a_bucket() {
    let (bucket, endpoint) = Bucket::start(now()).await;
    let storage = open(&config(&endpoint), now());
    let key = "generations/op_7/0.png";
    assert_eq!(storage.get(key).await, Ok(None));
    for content in [PNG, PNG, Bytes::new(), Bytes::from(vec![7; 5_000_000])] {
        storage.put(key, "image/png; a=\"b c\"", content.clone()).await.unwrap();
        let stored = storage.get(key).await.unwrap().unwrap();
        assert_eq!(stored.content_type, "image/png; a=\"b c\"");
        assert!(stored.bytes == content, "{} bytes", stored.bytes.len());
    }
    assert_eq!(bucket.objects.lock().unwrap().len(), 1);
    let other = open(&S3Config { bucket: "another".into(), ..config(&endpoint) }, now());
    let absent = other.get(key).await;
    assert!(
        matches!(&absent, Err(StorageError::Refused { code, .. }) if code == "NoSuchBucket"),
        "{absent:?}"
    );
    let sent = *bucket.requests.lock().unwrap();
    assert!(matches!(storage.get("../x").await, Err(StorageError::InvalidKey(_))));
    assert!(matches!(storage.put("a//b", "image/png", PNG).await, Err(StorageError::InvalidKey(_))));
    assert_eq!(*bucket.requests.lock().unwrap(), sent, "an invalid key is not sent");
}

/// DSP-20: a wrong credential, another region and a wrong clock are refused, with the reason and
/// without a secret, and are not tried again.
#[tokio::test]
async fn dsp_20_a_bucket_refuses_with_its_reason() {
    let (bucket, endpoint) = Bucket::start(now()).await;
    let good = config(&endpoint);
    let wrong = S3Config { secret_access_key: Secret::new("hunter2"), ..good.clone() };
    assert_eq!(refusal(&open(&wrong, now())).await, (403, "SignatureDoesNotMatch".into()));
    let unknown = S3Config { access_key_id: "AKIDOTHER".into(), ..good.clone() };
    assert_eq!(refusal(&open(&unknown, now())).await, (403, "InvalidAccessKeyId".into()));
    let elsewhere = S3Config { region: "eu-west-1".into(), ..good.clone() };
    assert_eq!(refusal(&open(&elsewhere, now())).await, (400, "AuthorizationHeaderMalformed".into()));
    for wrong in [now().before(16 * MINUTE), now().after(16 * MINUTE)] {
        assert_eq!(refusal(&open(&good, wrong)).await, (403, "RequestTimeTooSkewed".into()), "{wrong}");
    }
    assert_eq!((*bucket.requests.lock().unwrap(), bucket.objects.lock().unwrap().len()), (5, 0));
    for near in [now().before(14 * MINUTE), now().after(14 * MINUTE)] {
        open(&good, near).put("a", "image/png", PNG).await.unwrap();
    }
}

/// DSP-20: a request that was changed on its way is refused: its body, its type or its path.
#[tokio::test]
async fn dsp_20_a_changed_request_is_refused() {
    let (bucket, endpoint) = Bucket::start(now()).await;
    let storage = open(&config(&endpoint), now());
    let content =
        ObjectContent { content_type: Some("image/png".into()), bytes: PNG, sha256: sha256_hex(&PNG) };
    let signed = storage.sign(Method::Put, "a", content, now());
    let mut retyped = signed.clone();
    retyped.headers[0].1 = "text/html".into();
    let mut moved = signed.clone();
    moved.path = "/b".into();
    let changed = signed.clone().with_body(Bytes::from_static(b"<script>"));
    for (request, code) in [
        (changed, "XAmzContentSHA256Mismatch"),
        (retyped, "SignatureDoesNotMatch"),
        (moved, "SignatureDoesNotMatch"),
    ] {
        let response = storage.sender.exchange(request, Call::new("", b"", now())).await.unwrap();
        assert_eq!(ErrorResponse::read(&response).code, code);
    }
    assert!(bucket.objects.lock().unwrap().is_empty());
    let response = storage.sender.exchange(signed, Call::new("", b"", now())).await.unwrap();
    assert_eq!(response.status, 200);
}

/// DSP-20: a bucket in the name of the host is signed for that host.
#[test]
fn dsp_20_a_virtual_host_is_signed() {
    let config = S3Config { addressing: S3Addressing::VirtualHost, ..config("https://s3.example:8443/v1") };
    let storage = open(&config, now());
    let content = ObjectContent { content_type: None, bytes: Bytes::new(), sha256: sha256_hex(b"") };
    let request = storage.sign(Method::Get, "a/b.png", content, now());
    assert_eq!(request.path, "/a/b.png");
    let verified = |host: &str, path: &str| {
        let own = request.headers.iter().map(|(n, v)| (n.parse::<HeaderName>().unwrap(), v.parse().unwrap()));
        let host = std::iter::once((http::header::HOST, host.parse().unwrap()));
        verify("GET", path, &own.chain(host).collect::<HeaderMap>(), b"", now())
    };
    let forged = Err((403, "SignatureDoesNotMatch"));
    assert_eq!(verified("results.s3.example:8443", "/v1/a/b.png"), Ok(()));
    assert_eq!(verified("results.s3.example", "/v1/a/b.png"), forged);
    assert_eq!(verified("results.s3.example:8443", "/v1/results/a/b.png"), forged);
}

/// DSP-20: server errors and lost responses are followed by another attempt, a few times.
#[tokio::test]
async fn dsp_20_what_may_pass_is_tried_again() {
    let (bucket, endpoint) = Bucket::start(now()).await;
    let storage = open(&config(&endpoint), now());
    let set = |faults: &[BucketFault]| bucket.faults.lock().unwrap().extend(faults);
    set(&[BucketFault::Status(503), BucketFault::Silence, BucketFault::Status(500)]);
    storage.put("a", "image/png", PNG).await.unwrap();
    assert_eq!(*bucket.requests.lock().unwrap(), 4);
    set(&[BucketFault::Status(429), BucketFault::Status(502)]);
    assert_eq!(storage.get("a").await.unwrap().unwrap().bytes, PNG);
    set(&[BucketFault::Status(503); ATTEMPTS as usize]);
    let failed = storage.get("a").await.unwrap_err();
    assert!(failed.is_transient() && failed.to_string().contains("503 InternalError"), "{failed}");
    assert!(bucket.faults.lock().unwrap().is_empty());

    let nowhere = open(&config("http://127.0.0.1:1"), now());
    let failed = nowhere.put("a", "image/png", PNG).await.unwrap_err();
    assert!(matches!(failed, StorageError::Unavailable(_)), "{failed}");
}

/// OPS-22: neither the secret nor a signature is in what is printed.
#[test]
fn ops_22_a_storage_prints_no_secret() {
    let storage = open(&config("https://s3.example"), now());
    assert!(!format!("{storage:?} {:?}", config("https://s3.example")).contains("hunter2"));
}
