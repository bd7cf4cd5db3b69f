//! The names of things: an entity of a tenant, and a question.

use std::fmt;
use std::sync::Arc;

use crate::bounds::{CORRELATION_LEN_MAX, ENTITY_ID_LEN_MAX, ENTITY_TYPE_LEN_MAX, TENANT_LEN_MAX};

/// An entity of a tenant, by type and id. Clones are cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    /// Tenant, type and id in one text, and where the latter two begin.
    text: Arc<str>,
    type_at: usize,
    id_at: usize,
}

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityKeyError {
    /// The part.
    pub part: &'static str,
    /// Its longest length, in bytes.
    pub longest: usize,
}

impl EntityKey {
    /// Creates the key of the entity `id` of type `entity_type` that belongs to `tenant`. Each may
    /// contain any text.
    ///
    /// # Errors
    /// When a part is empty or too long.
    pub fn new(tenant: &str, entity_type: &str, id: &str) -> Result<Self, EntityKeyError> {
        check("tenant", tenant, TENANT_LEN_MAX)?;
        check_entity_type(entity_type)?;
        check("entity_id", id, ENTITY_ID_LEN_MAX)?;
        let type_at = tenant.len();
        let id_at = type_at + entity_type.len();
        Ok(Self { text: [tenant, entity_type, id].concat().into(), type_at, id_at })
    }

    /// Whose entity it is.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.text[..self.type_at]
    }

    /// Its type.
    #[must_use]
    pub fn entity_type(&self) -> &str {
        &self.text[self.type_at..self.id_at]
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.text[self.id_at..]
    }
}

/// Checks the type of an entity.
///
/// # Errors
/// When it is empty or too long.
pub fn check_entity_type(entity_type: &str) -> Result<(), EntityKeyError> {
    check("entity_type", entity_type, ENTITY_TYPE_LEN_MAX)
}

fn check(part: &'static str, text: &str, longest: usize) -> Result<(), EntityKeyError> {
    if text.is_empty() || text.len() > longest {
        return Err(EntityKeyError { part, longest });
    }
    Ok(())
}

impl fmt::Debug for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityKey({:?}, {:?}, {:?})", self.tenant(), self.entity_type(), self.id())
    }
}

impl fmt::Display for EntityKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must have 1 to {} bytes", self.part, self.longest)
    }
}

impl std::error::Error for EntityKeyError {}

/// What ties an answer to its question, or a caller to its logs. Clones are cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationId(Arc<str>);

impl CorrelationId {
    /// Creates an id.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(text: &str) -> Result<Self, EntityKeyError> {
        check("correlation_id", text, CORRELATION_LEN_MAX)?;
        Ok(Self(text.into()))
    }

    /// The id of a question asked on behalf of this caller: distinct for each `number`, and found
    /// by a search for the caller's own. The caller's is shortened if there is no room.
    #[must_use]
    pub(crate) fn of_question(&self, number: u64) -> Self {
        const SUFFIX_LEN_MAX: usize = 21;
        let mut end = self.0.len().min(CORRELATION_LEN_MAX - SUFFIX_LEN_MAX);
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        Self(format!("{}.{number}", &self.0[..end]).into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HYD-27: parts that join to the same text are different keys.
    #[test]
    fn hyd_27_keys_are_told_apart_by_their_parts() {
        let of = |tenant, kind, id| EntityKey::new(tenant, kind, id).unwrap();
        assert_ne!(of("ab", "c", "d"), of("a", "bc", "d"));
        assert_ne!(of("a", "bc", "d"), of("a", "b", "cd"));
        assert_eq!(of("a", "b", "c"), of("a", "b", "c"));
        let key = of("acme", "order", "a.*>\r\n7");
        assert_eq!((key.tenant(), key.entity_type(), key.id()), ("acme", "order", "a.*>\r\n7"));
    }

    /// HYD-26: names are bounded.
    #[test]
    fn hyd_26_names_have_bounds() {
        let long = "x".repeat(ENTITY_ID_LEN_MAX + 1);
        let refused = |tenant, kind, id| EntityKey::new(tenant, kind, id).unwrap_err().part;
        assert_eq!(refused("", "t", "i"), "tenant");
        assert_eq!(refused("a", "", "i"), "entity_type");
        assert_eq!(refused("a", "t", &long), "entity_id");
        assert!(EntityKey::new("a", "t", &long[1..]).is_ok());
        assert!(CorrelationId::new(&"x".repeat(CORRELATION_LEN_MAX + 1)).is_err());
    }

    #[test]
    fn questions_of_one_caller_are_distinct_and_bounded() {
        let own = CorrelationId::new(&"é".repeat(CORRELATION_LEN_MAX / 2)).unwrap();
        assert_ne!(own.of_question(1), own.of_question(2));
        assert!(CorrelationId::new(own.of_question(u64::MAX).as_str()).is_ok());
    }
}
