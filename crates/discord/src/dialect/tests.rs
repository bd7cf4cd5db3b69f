//! What a call charges, opens and sends, and what responses mean.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tidegate_core::bucket::{Bucket, Readiness};
use tidegate_core::{RetryRule, Time, Verdict};
use tidegate_upstream::http::Meaning;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::target::BaseUrl;

use super::*;

const AT: Time = Time::from_millis(1_000_000);

fn dialect() -> DiscordDialect {
    DiscordDialect::new("discord", BASE_URL, DiscordSettings::default())
}

fn request(method: Method, path: &str, body: &str) -> HttpRequest {
    HttpRequest::new(method, path).with_body(serde_json::from_str::<tidegate_upstream::Body>(body).unwrap())
}

fn charged(dialect: &DiscordDialect, request: &HttpRequest) -> Vec<String> {
    let charges = dialect.charges(request, &BTreeMap::new()).unwrap();
    assert!(charges.iter().all(|charge| charge.cost == MICRO));
    charges.iter().map(|charge| charge.limit.to_string()).collect()
}

/// Returns the dialect's interpretation of a response.
fn meaning(
    dialect: &DiscordDialect,
    mut request: HttpRequest,
    status: u16,
    lines: &[(&'static str, &str)],
    body: &str,
) -> Meaning {
    let retry_rule = RetryRule::new(dialect.on_unknown(&request), dialect.server_errors());
    let reader = dialect.prepare_request(&mut request, "op-1").unwrap();
    let base = BaseUrl::parse(BASE_URL).unwrap();
    let asked = RequestSummary { method: request.method, upstream: "discord", base: &base, retry_rule };
    let headers: HeaderMap =
        lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let content = Content::Whole(Bytes::from(body.to_owned()));
    let answer = UpstreamResponse { status: StatusCode::from_u16(status).unwrap(), headers, content, at: AT };
    let verdict = answer.verdict(&asked);
    reader.interpret(&answer, &asked, verdict)
}

const LIMITED: [(&str, &str); 4] = [
    ("x-ratelimit-limit", "5"),
    ("x-ratelimit-remaining", "3"),
    ("x-ratelimit-reset-after", "2.5"),
    ("x-ratelimit-bucket", "abcd"),
];

/// LIM-7, OPS-21: a call takes from the upstream, the brake, its route, the global limit, the
/// slots, what shares its hash, and what is hidden; limits that cannot be listed in advance are
/// opened with it.
#[test]
fn lim_7_what_a_call_takes_from() {
    let dialect = dialect();
    let rename = request(Method::Patch, "/channels/7", r#"{"name":"a"}"#);
    let route = "discord/PATCH /channels/{channel} 7";
    assert_eq!(
        charged(&dialect, &rename),
        ["discord", "discord/invalid", route, "discord/global", "discord/at_once", "discord/renames 7"]
    );
    meaning(&dialect, request(Method::Patch, "/channels/8", r#"{"nsfw":true}"#), 200, &LIMITED, "{}");
    assert_eq!(
        charged(&dialect, &rename),
        [
            "discord",
            "discord/invalid",
            route,
            "discord/global",
            "discord/at_once",
            "discord/bucket abcd 7",
            "discord/renames 7"
        ]
    );
    let charges = dialect.charges(&rename, &BTreeMap::new()).unwrap();
    let opened = dialect.limits_to_open(&rename, &charges);
    let names: Vec<_> = opened.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, [route, "discord/bucket abcd 7", "discord/renames 7"]);
    assert_eq!((opened[0].1, opened[1].1), (UNKNOWN_WINDOW, UNKNOWN_WINDOW));
    assert!(matches!(opened[2].1, LimitShape::Window { limit, .. } if limit == 2 * MICRO));
    // Charges from before the hash was known open nothing that they do not charge.
    assert_eq!(dialect.limits_to_open(&rename, &charges[..3]).len(), 1);
    let answering = request(Method::Post, "/interactions/5/tok/callback", "{}");
    assert_eq!(
        charged(&dialect, &answering),
        ["discord", "discord/invalid", "discord/POST /interactions/{id}/{token}/callback 5"]
    );
    let me = request(Method::Get, "/users/@me", "null");
    assert_eq!(charged(&dialect, &me)[2], "discord/GET /users/@me");
    assert_eq!(dialect.charges(&me, &BTreeMap::from([("calls".into(), 2)])).unwrap_err().field, "cost.calls");
}

/// A name is never longer than the model accepts.
#[test]
fn names_are_bounded() {
    let dialect = DiscordDialect::new(&"u".repeat(64), BASE_URL, DiscordSettings::default());
    let long = |word: &str| request(Method::Delete, &format!("/{}", vec![word; 90].join("/")), "null");
    let names = [long("soundboard-default-sounds"), long("send-soundboard-sound")]
        .map(|long| charged(&dialect, &long)[2].clone());
    assert!(names.iter().all(|name| name.len() <= LIMIT_LEN_MAX) && names[0] != names[1], "{names:?}");
}

/// OPS-21: a user agent is sent unless the caller has one; the version is not sent twice, and no
/// other one is accepted.
#[test]
fn ops_21_what_is_sent() {
    let dialect = dialect();
    let mut plain = request(Method::Get, "/api/v10/gateway?x=1", "null");
    dialect.prepare_request(&mut plain, "op");
    assert_eq!((plain.path.as_str(), plain.header("User-Agent").unwrap()), ("/gateway?x=1", USER_AGENT));
    assert!(USER_AGENT.starts_with("DiscordBot (") && USER_AGENT.ends_with(')'));
    let mut own = request(Method::Get, "/v10/gateway", "null");
    own.headers.push(("User-Agent".into(), "DiscordBot (mine, 1)".into()));
    own.headers.push(("X-Audit-Log-Reason".into(), "because".into()));
    dialect.prepare_request(&mut own, "op");
    assert_eq!((own.path.as_str(), own.headers.len()), ("/gateway", 2));
    let other = dialect.charges(&request(Method::Get, "/v9/gateway", "null"), &BTreeMap::new());
    assert_eq!(other.unwrap_err().message, "It asks for v9, but the base_url of discord is for v10.");
    let unversioned = DiscordDialect::new("d", "http://x/api", DiscordSettings::default());
    let mut kept = request(Method::Get, "/v9/gateway", "null");
    unversioned.prepare_request(&mut kept, "op");
    assert_eq!(kept.path, "/v9/gateway");
}

/// OPS-23: a create is not repeated blindly; a request that describes a final state may be.
#[test]
fn ops_23_only_creates_are_in_doubt() {
    let mut post = request(Method::Post, "/guilds/1/roles", "{}");
    post.headers.push(("idempotency-key".into(), "k".into()));
    assert_eq!(dialect().on_unknown(&post), OnUnknown::Ask);
    for method in [Method::Get, Method::Put, Method::Patch, Method::Delete] {
        assert_eq!(dialect().on_unknown(&request(method, "/channels/1", "null")), OnUnknown::Repeat);
    }
}

/// OPS-23: what a create that Discord fails to answer has left behind is unknown; a request that
/// describes a final state, and one that was not processed, is sent again.
#[test]
fn ops_23_a_create_may_exist_after_a_server_error() {
    let verdict = |method, status| {
        meaning(&dialect(), request(method, "/guilds/1/roles", "{}"), status, &[], "").verdict
    };
    for status in [500, 502, 504, 520] {
        assert!(matches!(verdict(Method::Post, status), Verdict::Unknown(_)), "{status}");
        assert!(matches!(verdict(Method::Patch, status), Verdict::Retry { .. }), "{status}");
    }
    for status in [408, 503, 521] {
        assert!(matches!(verdict(Method::Post, status), Verdict::Retry { .. }), "{status}");
    }
}

fn shown(meaning: &Meaning) -> String {
    let verdict = match &meaning.verdict {
        Verdict::Done => "done".to_owned(),
        Verdict::Throttled { after, scope, fault } => {
            format!("throttled {} {after:?}: {}", scope.as_deref().unwrap_or("all"), fault.message)
        }
        Verdict::Retry { after, fault } => format!("retry {after:?}: {}", fault.message),
        Verdict::Rejected(fault) => format!("rejected {fault}"),
        other => format!("{other:?}"),
    };
    let figure = |name: &str, value: Option<u64>| {
        value.map(|value| format!(" {name} {}", value / MICRO)).unwrap_or_default()
    };
    let hints = meaning.hints.iter().map(|hint| {
        let reset = hint.reset_at.map(|at| format!(" until +{:?}", at.since(AT))).unwrap_or_default();
        let (left, of) = (figure("left", hint.remaining), figure("of", hint.capacity));
        format!("\n  {}{left}{of}{reset}{}", hint.limit, figure("spent", hint.spent))
    });
    format!("{verdict}{}", hints.collect::<String>())
}

/// Description, status, headers, body.
type AnswerCase<'a> = (&'a str, u16, &'a [(&'static str, &'a str)], &'a str);

/// LIM-8, LIM-12, LIM-25, OPS-10: what each kind of response means, for the operation and for every
/// limit.
#[test]
fn lim_12_every_answer_has_its_meaning() {
    let (user, shared) = (("x-ratelimit-scope", "user"), ("x-ratelimit-scope", "shared"));
    let wait = r#"{"message":"You are being rate limited.","retry_after":64.57,"global":false}"#;
    let spent = [
        user,
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-reset-after", "64.1"),
        ("retry-after", "65"),
    ];
    let hidden = [user, LIMITED[0], LIMITED[1], LIMITED[2], ("retry-after", "2")];
    let global = [("x-ratelimit-scope", "global"), ("x-ratelimit-global", "true"), ("retry-after", "1")];
    let empty =
        [user, LIMITED[0], ("x-ratelimit-remaining", "0"), LIMITED[2], LIMITED[3], ("retry-after", "9")];
    let table: [AnswerCase<'_>; 17] = [
        ("done", 200, &LIMITED, "{}"),
        ("done, nothing told", 204, &[], ""),
        ("not ready", 202, &[], r#"{"code":110000,"message":"Index not yet available","retry_after":3}"#),
        ("accepted", 202, &LIMITED, "{}"),
        ("route", 429, &spent, wait),
        ("hidden", 429, &hidden, wait),
        ("global", 429, &global, r#"{"retry_after":0.5,"global":true}"#),
        ("shared", 429, &[shared, LIMITED[0], LIMITED[1], LIMITED[2]], wait),
        ("edge", 429, &[("retry-after", "66271")], "<html>"),
        ("edge, no time", 429, &[], "error code: 1015"),
        ("nonsense", 429, &[user, ("retry-after", "soon")], "{"),
        ("token", 401, &[], r#"{"code":0,"message":"401: Unauthorized"}"#),
        ("permission", 403, &LIMITED, r#"{"code":50013,"message":"Missing Permissions"}"#),
        ("gone", 404, &LIMITED, r#"{"code":10003,"message":"Unknown Channel"}"#),
        ("broken", 502, &[], "<html>"),
        (
            "broken, with a reason",
            500,
            &LIMITED,
            r#"{"code":7,"message":"cannot read properties of undefined"}"#,
        ),
        ("longer than its reset", 429, &empty, "{}"),
    ];
    let told = table.map(|(name, status, headers, body)| {
        let rename = request(Method::Patch, "/channels/7", r#"{"name":"a"}"#);
        format!("{name}: {}", shown(&meaning(&dialect(), rename, status, headers, body)))
    });
    insta::assert_snapshot!(told.join("\n"));
}

/// LIM-25: a webhook's token in the path is not the bot's: when it is gone, the bot continues.
#[test]
fn lim_25_a_lost_webhook_does_not_stop_the_bot() {
    let body = r#"{"code":50027,"message":"Invalid Webhook Token"}"#;
    let said = meaning(&dialect(), request(Method::Post, "/webhooks/7/tok", "{}"), 401, &[], body);
    assert!(
        matches!(&said.verdict, Verdict::Rejected(fault) if !fault.message.contains("tok")),
        "{:?}",
        said.verdict
    );
    assert!(said.hints.is_empty(), "{:?}", said.hints);
}

/// LIM-7, LIM-25: whatever is granted, no second has more than the global limit and no ten minutes
/// more than the brake.
#[test]
fn lim_25_no_time_has_more_than_its_figure() {
    let dialect = dialect();
    for (shape, over, most) in [
        (dialect.global_limit(), Duration::from_secs(1), 50),
        (dialect.invalid_request_limit(), INVALID_WINDOW, INVALID_MAX as usize),
    ] {
        let (mut bucket, mut now, mut times) = (Bucket::new(shape, AT).unwrap(), AT, Vec::new());
        while now.since(AT) < over * 3 {
            match bucket.ready(MICRO, now) {
                Readiness::At(at) => now = at,
                _ => {
                    let mark = bucket.take(MICRO);
                    bucket.mark_finished(mark, now);
                    times.push(now);
                }
            }
        }
        let mut first = 0;
        for (last, at) in times.iter().enumerate() {
            while at.since(times[first]) >= over {
                first += 1;
            }
            assert!(last - first < most, "{} in {over:?}", last - first + 1);
        }
        assert!(times.len() >= most * 19 / 10);
    }
}
