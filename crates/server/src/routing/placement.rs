//! Finds the partition of a request from its path and body.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use tidegate_core::id::Partition;
use tidegate_core::{LimitName, OperationId, Placement};
use tidegate_discord::deploy;
use tidegate_dispatch::Dispatch;

use super::RoutingState;
use crate::generations;
use crate::pacing::target::PREFIX;
use crate::work::RemoteKinds;

/// How the partition of a request is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoutingRule {
    /// By the id in its path.
    Operation,
    /// By the id in its path. Its fence makes it safe to repeat.
    Completion,
    /// By the upstream, or the group, in its body.
    Submission,
    /// The same for each of its members.
    Batch,
    /// By the upstream, or the guild, in its body.
    Deployment,
    /// All partitions, newest first.
    Operations,
    /// All partitions, added up.
    Summary,
    /// All partitions, by name.
    Groups,
    /// All partitions: a group may have operations for several upstreams.
    Group,
    /// All partitions, if one of them knows the group.
    Pause,
    /// All partitions; each reruns its own.
    GroupRerun,
    /// All partitions; each changes its own.
    Bulk,
    /// All partitions.
    Limits,
    /// By the upstream in the limit's name.
    Limit,
    /// By the ids of its members.
    Extensions,
    /// The same.
    Settlements,
    /// By the upstream in its path, or the group in its headers.
    Proxy,
    /// The partition that has all generations.
    Generations,
    /// By the id in its path.
    Generation,
    /// By the token in its path.
    Webhook,
}

impl RoutingRule {
    /// Whether the partition of such a request depends on this node's configuration.
    pub(super) const fn uses_local_config(self) -> bool {
        matches!(self, Self::Submission | Self::Batch | Self::Deployment | Self::Limit | Self::Proxy)
    }

    /// Whether the headers of such a request reach its partition: signatures, languages, the last
    /// event.
    pub(super) const fn passes_headers(self) -> bool {
        matches!(self, Self::Proxy | Self::Generations | Self::Generation | Self::Webhook)
    }
}

/// Whether the headers of a request for this target are forwarded with it.
pub(super) fn has_passed_headers(target: &str) -> bool {
    [PREFIX, "/api/", "/generations", "/ledger", "/v1/ledger", "/v1/providers"]
        .iter()
        .any(|start| target.starts_with(start))
}

/// The fields of a submission that decide its partition.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PlacementKey<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    upstream: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    group: Option<Cow<'a, str>>,
    #[serde(default)]
    dedupe_key: Option<serde::de::IgnoredAny>,
}

/// The fields of a deployment that decide its partition.
#[derive(Debug, Default, Deserialize)]
struct DeploymentPlacement<'a> {
    #[serde(borrow, default)]
    upstream: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    guild: Option<Cow<'a, str>>,
}

impl<'a> PlacementKey<'a> {
    /// Reads a submission as far as possible. One that cannot be read has a partition too, which
    /// reports what is wrong with it.
    pub(super) fn read(body: &'a [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The key of a request whose upstream and group are known.
    pub(super) fn new(upstream: Cow<'a, str>, group: Cow<'a, str>) -> Self {
        Self { kind: None, upstream: Some(upstream), group: Some(group), dedupe_key: None }
    }

    /// The key of a deployment: its steps are operations of the guild's group.
    pub(super) fn from_deployment(body: &'a [u8]) -> Self {
        let DeploymentPlacement { upstream, guild } = serde_json::from_slice(body).unwrap_or_default();
        let group = guild.and_then(|guild| guild.parse().ok()).map(|guild| Cow::Owned(deploy::group(guild)));
        Self { kind: None, upstream, group, dedupe_key: None }
    }

    /// Whether it can be submitted again without being accepted twice.
    pub(super) const fn may_be_repeated(&self) -> bool {
        self.dedupe_key.is_some()
    }

    pub(super) fn partition(&self, routing: &RoutingState) -> Partition {
        let partitions = routing.cluster.partitions();
        match self.limited_kind(&routing.server.remote_kinds) {
            Some(kind) => Placement::Upstream(kind).partition(partitions),
            None => self.partition_among(&routing.spread, partitions),
        }
    }

    /// The kind, if its operations are in one partition because it has limits: like an upstream of
    /// that name, which there is not.
    fn limited_kind(&self, kinds: &RemoteKinds) -> Option<&str> {
        let kind = self.kind.as_deref().filter(|_| self.upstream.is_none())?;
        kinds.limited.contains(kind).then_some(kind)
    }

    /// Applies the placement rule. A store with an outbox implements it too, and a test keeps the
    /// two in step.
    pub(super) fn partition_among(&self, spread: &BTreeSet<String>, partitions: Partition) -> Partition {
        let group = self.group.as_deref().unwrap_or_default();
        Placement::new(self.upstream.as_deref(), group, |upstream| spread.contains(upstream))
            .partition(partitions)
    }
}

/// The id in a path such as `/v1/operations/op_…/why`, however the client has encoded it.
pub(super) fn id_in(target: &str) -> Option<OperationId> {
    let path = target.split('?').next().unwrap_or_default();
    path.split('/')
        .find_map(|part| percent_encoding::percent_decode_str(part).decode_utf8().ok()?.parse().ok())
}

/// The upstream of the limit in a path such as `/v1/limits/echo/requests`.
pub(super) fn upstream_in(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let name = path.strip_prefix("/v1/limits/").unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    generations::home_of_limit(LimitName::parse(&name).upstream()).to_owned()
}

/// The operation of the token in a path such as `/api/webhooks/fal/TOKEN`.
pub(super) fn webhook_operation(target: &str) -> Option<OperationId> {
    let path = target.split('?').next().unwrap_or_default();
    let token = path.rsplit('/').next().unwrap_or_default();
    let token = percent_encoding::percent_decode_str(token).decode_utf8().ok()?;
    Dispatch::operation_of(&token)
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;
    use tidegate_sim::rng::SeededRng;
    use tidegate_store::Upkeep;
    use tidegate_store::outbox::{Outbox, PublishedUpstream};
    use tidegate_store_postgres::{PostgresStore, outbox};

    use super::*;

    /// A random name of letters of many scripts and of characters that JSON has to escape.
    fn name(chance: &mut SeededRng) -> String {
        const LETTERS: [char; 16] =
            ['a', 'Z', '0', ':', '/', '-', ' ', '"', '\\', 'é', 'ß', 'Ω', 'ж', '日', '🌊', '\u{301}'];
        let len = 1 + chance.next() % 12;
        (0..len).map(|_| LETTERS[(chance.next() % LETTERS.len() as u64) as usize]).collect()
    }

    /// An id is found in a path as it is, and when the client has escaped more of it than needed.
    #[test]
    fn an_id_is_found_however_it_is_written() {
        let id =
            OperationId::new(tidegate_core::Time::from_millis(1_794_737_805_458), 3, tidegate_core::Seq(7));
        let escaped = id.to_string().replace('_', "%5F");
        for target in [format!("/v1/operations/{id}/why?x=1"), format!("/v1/operations/{escaped}/why")] {
            assert_eq!(id_in(&target), Some(id), "{target}");
        }
        assert_eq!(id_in("/v1/operations/op%ff"), None);
    }

    /// OPS-4: an operation submitted with SQL has the same partition as one submitted over HTTP, so
    /// that a group has one queue whichever way its operations come.
    #[tokio::test]
    async fn ops_4_sql_and_http_agree_on_every_place() {
        const PARTITIONS: Partition = 23;
        let server = tidegate_fixture::postgres::PostgresServer::start();
        let store = PostgresStore::connect(&server.url()).await.unwrap();
        store.migrate().await.unwrap();
        store.ensure_partitions(PARTITIONS).await.unwrap();
        let mut chance = SeededRng::new(7);
        let names: BTreeSet<String> = (0..60).map(|_| name(&mut chance)).collect();
        let spread: BTreeSet<String> = names.iter().filter(|_| chance.happens(0.5)).cloned().collect();
        let published = names
            .iter()
            .map(|name| PublishedUpstream { name: name.clone(), is_spread: spread.contains(name) });
        store.publish(published.collect()).await.unwrap();
        let mut sql = sqlx::PgConnection::connect(&server.url()).await.unwrap();
        let mut wanted = BTreeSet::new();
        for upstream in names.iter().cycle().take(400) {
            let body = serde_json::json!({ "upstream": upstream, "group": name(&mut chance), "request": { "method": "GET", "path": "/" } });
            let body = body.to_string();
            let place = PlacementKey::read(body.as_bytes()).partition_among(&spread, PARTITIONS);
            let id = outbox::enqueue(&mut sql, "tidegate", &body).await.unwrap();
            wanted.insert((id, place));
        }
        let mut found = BTreeSet::new();
        for partition in 0..PARTITIONS {
            let rows = store.waiting_rows(partition, 1_000).await.unwrap();
            found.extend(rows.into_iter().map(|row| (row.id, partition)));
        }
        assert_eq!(found, wanted);
    }

    #[test]
    fn paths_say_what_they_are_about() {
        let id = OperationId::new(tidegate_core::Time::from_millis(7), 3, tidegate_core::Seq(9));
        assert_eq!(id_in(&format!("/v1/operations/{id}/why?x=1")), Some(id));
        assert_eq!(id_in("/v1/operations/nothing"), None);
        assert_eq!(upstream_in("/v1/limits/echo/requests"), "echo");
        assert_eq!(upstream_in("/v1/limits/echo%2Frequests?x"), "echo");
    }

    #[test]
    fn heads_are_read_as_far_as_they_go() {
        let head = PlacementKey::read(
            br#"{"upstream":"echo","group":"g\u00e9","dedupe_key":"k","request":{"body":[1]}}"#,
        );
        assert_eq!((head.upstream.as_deref(), head.group.as_deref()), (Some("echo"), Some("gé")));
        assert!(head.may_be_repeated());
        assert!(!PlacementKey::read(b"nonsense").may_be_repeated());
        assert!(!PlacementKey::read(br#"{"dedupe_key":null}"#).may_be_repeated());
        let head = PlacementKey::from_deployment(
            br#"{"upstream":"bot","guild":"7","template":"a\nb","prune":true}"#,
        );
        assert_eq!((head.upstream.as_deref(), head.group.as_deref()), (Some("bot"), Some("guild:7")));
    }
}
