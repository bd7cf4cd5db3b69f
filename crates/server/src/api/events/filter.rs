//! The filter of events, as a client sends it and as a node passes it on to the others.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate::Change;
use tidegate_core::OperationId;

use crate::edge::query::{Query, bad_parameter};

/// The filter of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFilter {
    group: Option<String>,
    id: Option<OperationId>,
    kind: Option<String>,
    /// Whether the end of an operation includes its result and its fault.
    pub results: bool,
}

impl EventFilter {
    pub(crate) fn read(query: &mut Query) -> crate::error::Result<Self> {
        let wrong = |_| bad_parameter("id", "must be the id of an operation");
        let id = query.take("id").map(|text| text.parse::<OperationId>().map_err(wrong)).transpose()?;
        let results = match query.take("results").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(bad_parameter("results", "must be true or false")),
        };
        Ok(Self { group: query.take("group"), id, kind: query.take("kind"), results })
    }

    /// The same filter as the query of a URL.
    pub(crate) fn to_query(&self) -> String {
        let id = self.id.map(|id| id.to_string());
        let pairs = [("group", self.group.as_deref()), ("id", id.as_deref()), ("kind", self.kind.as_deref())];
        let mut query = format!("results={}", self.results);
        for (name, value) in pairs {
            if let Some(value) = value {
                query += &format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
            }
        }
        query
    }

    /// Whether a change passes. A change that is not about an operation has neither an id nor a
    /// kind.
    pub(crate) fn passes(&self, change: &Change) -> bool {
        let (of_group, of_id, of_kind) = match change {
            Change::Operation { id, group, kind, .. } => (Some(group), Some(*id), Some(kind)),
            Change::Group { group, .. } => (Some(group), None, None),
            _ => (None, None, None),
        };
        let is = |wanted: &Option<String>, own: Option<&Arc<str>>| {
            wanted.as_ref().is_none_or(|wanted| own.is_some_and(|own| **own == **wanted))
        };
        is(&self.group, of_group) && is(&self.kind, of_kind) && self.id.is_none_or(|id| of_id == Some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_same_at_another_node() {
        let id = "op_0000000000000000000000000a";
        for query in ["", "group=a%26b%3D%C3%A4+c&kind=http", &format!("id={id}&results=true")] {
            let filter = EventFilter::read(&mut Query::parse(query)).unwrap();
            let mut passed_on = Query::parse(&filter.to_query());
            let other = EventFilter::read(&mut passed_on).unwrap();
            assert_eq!(format!("{filter:?}"), format!("{other:?}"), "{query}");
            passed_on.finish().unwrap();
        }
    }
}
