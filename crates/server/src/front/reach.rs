//! Which partition a call is about, as far as its path and body say.

use std::borrow::Cow;

use axum::routing::MethodFilter;
use serde::Deserialize;
use tidegate_cluster::place;
use tidegate_core::OperationId;
use tidegate_core::id::Partition;

use super::Front;

/// How a call finds its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// By the id in its path.
    Operation,
    /// By the upstream, or the group, in its body.
    Submission,
    /// The same for each of its members.
    Batch,
    /// All of them, newest first.
    Operations,
    /// All of them, by name.
    Groups,
    /// All of them: a group may have operations for several upstreams.
    Group,
    /// All of them.
    Limits,
    /// By the upstream in the limit's name.
    Limit,
}

/// How the calls of a route find their way; `None` for those that each node answers by itself.
pub(super) fn of(method: MethodFilter, path: &str) -> Option<Reach> {
    Some(match path {
        "/v1/operations" if method == MethodFilter::POST => Reach::Submission,
        "/v1/operations" => Reach::Operations,
        "/v1/operations/batch" => Reach::Batch,
        "/v1/operations/{id}"
        | "/v1/operations/{id}/why"
        | "/v1/operations/{id}/cancel"
        | "/v1/operations/{id}/rerun"
        | "/v1/operations/{id}/resolve"
        | "/operations/{id}" => Reach::Operation,
        "/v1/groups" => Reach::Groups,
        "/v1/groups/{group}"
        | "/v1/groups/{group}/pause"
        | "/v1/groups/{group}/resume"
        | "/groups/{group}" => Reach::Group,
        "/v1/limits" => Reach::Limits,
        "/v1/limits/{*name}" => Reach::Limit,
        _ => return None,
    })
}

/// What a submission says about its place.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, default)]
    upstream: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    group: Option<Cow<'a, str>>,
    #[serde(default)]
    dedupe_key: Option<serde::de::IgnoredAny>,
}

impl<'a> Head<'a> {
    /// What can be read of it. One that cannot be read has a place too, where it is told what is wrong with it.
    pub(super) fn read(body: &'a [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Whether it may be handed in again without being accepted twice.
    pub(super) const fn may_be_repeated(&self) -> bool {
        self.dedupe_key.is_some()
    }

    pub(super) fn place(&self, front: &Front) -> Partition {
        let group = self.group.as_deref().unwrap_or_default();
        match self.upstream.as_deref() {
            Some(upstream) if !front.spread.contains(upstream) => {
                upstream_place(upstream, front.cluster.partitions())
            }
            _ => place(&format!("group {group}"), front.cluster.partitions()),
        }
    }
}

/// Where everything of an upstream has its place.
pub(crate) fn upstream_place(upstream: &str, partitions: Partition) -> Partition {
    place(&format!("upstream {upstream}"), partitions)
}

/// The id in a path such as `/v1/operations/op_…/why`.
pub(super) fn id_in(target: &str) -> Option<OperationId> {
    let path = target.split('?').next().unwrap_or_default();
    path.split('/').find_map(|part| part.parse().ok())
}

/// The upstream of the limit in a path such as `/v1/limits/echo/requests`.
pub(super) fn upstream_in(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let name = path.strip_prefix("/v1/limits/").unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    name.split('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let head =
            Head::read(br#"{"upstream":"echo","group":"g\u00e9","dedupe_key":"k","request":{"body":[1]}}"#);
        assert_eq!((head.upstream.as_deref(), head.group.as_deref()), (Some("echo"), Some("gé")));
        assert!(head.may_be_repeated());
        assert!(!Head::read(b"nonsense").may_be_repeated());
        assert!(!Head::read(br#"{"dedupe_key":null}"#).may_be_repeated());
    }
}
