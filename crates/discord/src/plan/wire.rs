//! A request body before all ids are known: an object that an earlier step will create is referred
//! to by its key.

use serde_json::{Map, Value};

use crate::journal::GuildJournal;
use crate::{Id, ObjectKey, ObjectKind};

/// An object that exists, or will exist once its step has been applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectRef {
    /// It exists.
    Known(Id),
    /// An earlier step creates it and the journal will know it.
    Planned(ObjectKind, ObjectKey),
}

/// A request was built before an object it depends on existed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} {1} does not exist yet: its step comes first.")]
pub struct MissingObject(pub ObjectKind, pub ObjectKey);

impl ObjectRef {
    /// Returns its id; from the journal where it was not known at planning.
    ///
    /// # Errors
    /// When its step was not applied yet.
    pub fn id(&self, journal: &GuildJournal) -> Result<Id, MissingObject> {
        match self {
            Self::Known(id) => Ok(*id),
            Self::Planned(kind, key) => {
                journal.get(*kind, key).map(|entry| entry.id).ok_or_else(|| MissingObject(*kind, key.clone()))
            }
        }
    }

    /// Returns the reference for people, and for a plan as JSON.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Known(id) => id.to_string(),
            Self::Planned(kind, key) => format!("<{kind} {key}>"),
        }
    }
}

/// JSON that contains references to objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnresolvedJson {
    /// Plain JSON.
    Plain(Value),
    /// The id of an object, in quotes.
    Id(ObjectRef),
    /// A list.
    List(Vec<Self>),
    /// An object, in this order.
    Object(Vec<(&'static str, Self)>),
}

impl UnresolvedJson {
    /// Resolves all references to ids.
    ///
    /// # Errors
    /// When an object it refers to does not exist yet.
    pub fn resolve(&self, journal: &GuildJournal) -> Result<Value, MissingObject> {
        self.map(&|handle| handle.id(journal).map(|id| id.to_string()))
    }

    /// Returns the JSON with keys where ids are not known yet.
    #[must_use]
    pub fn to_display_json(&self) -> Value {
        self.map::<MissingObject>(&|handle| Ok(handle.describe())).unwrap_or(Value::Null)
    }

    fn map<E>(&self, id: &impl Fn(&ObjectRef) -> Result<String, E>) -> Result<Value, E> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Id(handle) => Value::String(id(handle)?),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.map(id)).collect::<Result<_, _>>()?)
            }
            Self::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| Ok(((*name).to_owned(), value.map(id)?)));
                Value::Object(fields.collect::<Result<Map<_, _>, E>>()?)
            }
        })
    }
}
