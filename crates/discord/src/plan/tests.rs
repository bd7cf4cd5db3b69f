//! Fingerprints that must never change, and the simulation of the limits.

use super::*;
use crate::ObjectKey;
use crate::journal::GuildJournalEntry;
use crate::template::Template;

fn template() -> Template {
    Template::read("small.yaml", include_str!("../../../../examples/guilds/small.yaml")).unwrap()
}

fn empty() -> Guild {
    let everyone = br#"[{"id":"1","name":"@everyone","permissions":"0","position":0}]"#;
    Guild::decode(Id(1), everyone, b"[]").unwrap()
}

/// OPS-3: the fingerprints of a desired state are fixed; they are the same on every machine and in
/// every version.
#[test]
fn ops_3_fingerprints_are_frozen() {
    let plan = Plan::make(&template(), &empty(), &GuildJournal::default(), Options::default());
    let told: Vec<_> =
        plan.steps.iter().map(|step| format!("{} {}", step.fingerprint, step.target)).collect();
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(
        plan.steps[0].operation_key(Id(42), "d-7"),
        format!("guild:42/deploy:d-7/RoleEnsure/lead/{}", plan.steps[0].fingerprint)
    );
    let keys: std::collections::BTreeSet<_> =
        plan.steps.iter().map(|step| step.operation_key(Id(1), "d")).collect();
    assert_eq!(keys.len(), plan.steps.len(), "no two steps have one key");
}

/// OPS-3: a fingerprint covers the desired state and nothing else: no ids, and not the order of
/// overwrites.
#[test]
fn ops_3_fingerprints_know_no_ids() {
    let mut other = template();
    other.categories[1].overwrites.reverse();
    let mut guild = empty();
    guild.id = Id(99);
    let of = |template: &Template, guild: &Guild| {
        let plan = Plan::make(template, guild, &GuildJournal::default(), Options::default());
        plan.steps.into_iter().map(|step| step.fingerprint).collect::<Vec<_>>()
    };
    assert_eq!(of(&template(), &empty()), of(&other, &guild));
    other.roles[0].hoist = false;
    assert_ne!(of(&template(), &empty())[0], of(&other, &guild)[0]);
}

/// OPS-26: calls, room and time are known before the first call.
#[test]
fn ops_26_a_plan_counts_before_it_calls() {
    let plan = Plan::make(&template(), &empty(), &GuildJournal::default(), Options::default());
    let mut limits = KnownLimits::documented(100);
    let estimate = plan.estimate(&limits);
    // Four roles, two categories, six channels, two orders, two messages; one after the other.
    assert_eq!((estimate.calls, estimate.time_ms), (16, 1_600));
    assert_eq!((estimate.roles_left, estimate.channels_left), (245, 492));
    assert_eq!(estimate.role_creates_left, 246);
    // Two channel creates in ten seconds: they alternate with roles, so the 8 of them begin at 0.1,
    // 0.3, 10.1, …, 30.1, 30.2, and the orders follow.
    limits.routes.insert("POST /guilds/{guild}/channels".to_owned(), Rate { calls: 2, per_ms: 10_000 });
    assert_eq!(plan.estimate(&limits).time_ms, 30_200 + 300);
    assert_eq!((estimate.routes_unknown, plan.estimate(&limits).routes_unknown), (3, 2));
    // A slow global limit: 16 calls, five per second.
    let slow = KnownLimits { global: Rate { calls: 5, per_ms: 1_000 }, ..KnownLimits::documented(1) };
    assert_eq!(plan.estimate(&slow).time_ms, 3_001);
    insta::assert_snapshot!(estimate);
}

/// OPS-26: quotas that no header announces are counted with what was used before.
#[test]
fn ops_26_hidden_quotas_are_counted() {
    let limits = KnownLimits { role_creates_used: 248, ..KnownLimits::documented(0) };
    let plan = Plan::make(&template(), &empty(), &GuildJournal::default(), Options::default());
    let estimate = plan.estimate(&limits);
    assert_eq!(estimate.role_creates_left, 0);
    assert_eq!(estimate.time_ms, 48 * 3_600_000, "the third role has to wait for two days");

    let mut guild = empty();
    let channel = br#"[{"id":"7","type":0,"name":"old-intake","permission_overwrites":[]}]"#;
    guild.channels = Guild::decode(Id(1), b"[]", channel).unwrap().channels;
    let mut journal = GuildJournal::default();
    let entry = GuildJournalEntry { id: Id(7), channel: None, fingerprint: String::new() };
    journal.record(ObjectKind::Channel, ObjectKey::new("intake").unwrap(), entry);
    let plan = Plan::make(&template(), &guild, &journal, Options::default());
    let mut limits = KnownLimits::documented(0);
    limits.renames_used.insert(Id(7), 2);
    let estimate = plan.estimate(&limits);
    assert_eq!((estimate.renames_held, estimate.time_ms), (vec![Id(7)], 600_000));
}
