//! The filter of a list of operations, and of the commands about all that it finds.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

/// The options that make a filter.
#[rustfmt::skip]
pub(super) const FILTERS: [&str; 12] = [
    "group", "state", "kind", "upstream", "created_after", "created_before", "error", "fault_class",
    "fault_message", "may_have_happened", "finished_after", "finished_before",
];

/// A filter of operations; all that is given has to match.
#[derive(Args, Debug, Serialize)]
pub(super) struct FilterArgs {
    /// Operations of this group.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Operations in these states, comma-separated: queued, waiting, running, unknown, succeeded,
    /// failed, canceled. A command is by default about those that it can change, except canceled
    /// ones.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Operations of this kind: http, or another that the server supports, such as shopify.bulk.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Operations for this upstream.
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Operations accepted at this time or later, such as 2031-05-06T07:08:09Z.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_after: Option<String>,
    /// Operations accepted before this time.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_before: Option<String>,
    /// Operations whose last fault has this text, whatever the case.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Operations whose last fault is of this class: validation, forbidden, not_found,
    /// rate_limited, transient, conflict.
    #[arg(long, value_name = "CLASS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_class: Option<String>,
    /// Operations whose last fault has exactly this message.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_message: Option<String>,
    /// Operations whose call may have taken effect although they failed, or, with `false`, those of
    /// which that is excluded.
    #[arg(long, value_name = "true|false")]
    #[serde(skip_serializing_if = "Option::is_none")]
    may_have_happened: Option<bool>,
    /// Operations that ended at this time or later.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_after: Option<String>,
    /// Operations that ended before this time.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_before: Option<String>,
}

impl FilterArgs {
    /// What is given, as in the query of a list.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        let given = serde_json::to_value(self).unwrap_or_default();
        FILTERS.into_iter().map(move |name| {
            let value = match &given[name] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            (name, value)
        })
    }
}
