//! A subscription receives what its filter matches, and no id changes what that is.

use tidegate_bus::FilterToken::{Any, Exact, Rest};
use tidegate_bus::{BusMessage, Subject};

use super::{BusBackend, connect, filter, next_message, publish, subject, subscribe};

/// Names that mean something to a bus, a protocol or a pattern.
const HOSTILE: [&str; 20] = [
    "acme",
    "acme.com",
    "acme.com.updated",
    ".",
    "*",
    ">",
    "a*",
    "",
    " ",
    "a b",
    "a\r\nPUB x 1\r\nx\r\n",
    "\n",
    "\0",
    "ä",
    "%2E",
    "[a-z]",
    "?",
    "\\",
    "$SYS",
    "_INBOX",
];

/// The subjects and payloads of the messages before the last one, whose payload is `end`.
async fn messages_until_end(subscription: &mut tidegate_bus::BusSubscription) -> Vec<(Subject, String)> {
    let mut messages = Vec::new();
    loop {
        let BusMessage { subject, payload } = next_message(subscription).await;
        let text = String::from_utf8_lossy(&payload).into_owned();
        if text == "end" {
            return messages;
        }
        messages.push((subject, text));
    }
}

/// A wildcard stands for exactly one token, or for the rest of them, at least one.
pub async fn wildcards_match_tokens(backend: &dyn BusBackend) {
    let bus = connect(backend).await;
    let all = [
        subject(&["tg"]),
        subject(&["tg", "a"]),
        subject(&["tg", "a", "updated"]),
        subject(&["tg", "b", "updated"]),
        subject(&["tg", "a", "b", "updated"]),
        subject(&["other", "a", "updated"]),
    ];
    let cases: [(Vec<_>, &[usize]); 6] = [
        (vec![Exact("tg"), Any, Exact("updated")], &[2, 3]),
        (vec![Exact("tg"), Any], &[1]),
        (vec![Exact("tg"), Rest], &[1, 2, 3, 4]),
        (vec![Any, Exact("a"), Rest], &[2, 4, 5]),
        (vec![Exact("tg"), Any, Any, Exact("updated")], &[4]),
        (vec![Exact("tg"), Exact("a"), Exact("updated")], &[2]),
    ];
    for (tokens, expected) in cases {
        let wanted = filter(&tokens);
        let mut subscription = subscribe(&bus, &wanted).await;
        for (number, on) in all.iter().enumerate() {
            publish(&bus, on, number.to_string()).await;
        }
        publish(&bus, &all[expected[0]], "end").await;
        let found = messages_until_end(&mut subscription).await;
        let expected: Vec<_> =
            expected.iter().map(|number| (all[*number].clone(), number.to_string())).collect();
        assert_eq!(found, expected, "{wanted}");
    }
}

/// HYD-27: whatever tenants are called, each receives its own messages and no others, and their
/// names come back as they are.
pub async fn tenants_are_apart_whatever_they_are_called(backend: &dyn BusBackend) {
    let (here, there) = (connect(backend).await, connect(backend).await);
    let mut subscriptions = Vec::new();
    for (number, tenant) in HOSTILE.iter().enumerate() {
        // The second kind of filter is one that a bus may have to express differently.
        let last = if number % 2 == 0 { Exact("updated") } else { Any };
        subscriptions.push(subscribe(&there, &filter(&[Exact("tg"), Exact(tenant), last])).await);
    }
    for text in ["first", "end"] {
        for tenant in HOSTILE {
            publish(&here, &subject(&["tg", tenant, "updated"]), text).await;
        }
    }
    for (subscription, tenant) in subscriptions.iter_mut().zip(HOSTILE) {
        let found = messages_until_end(subscription).await;
        assert_eq!(found, [(subject(&["tg", tenant, "updated"]), "first".to_owned())], "{tenant:?}");
        assert_eq!(found[0].0.tokens().nth(1).as_deref(), Some(tenant));
    }
}
