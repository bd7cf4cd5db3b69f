//! How much of an entity is wanted, asked for or brought: that it exists, some fields, or all that
//! its owner gives away.

use std::collections::BTreeSet;
use std::fmt;

use crate::bounds::{ENTITY_FIELD_LEN_MAX, ENTITY_FIELDS_MAX};

/// A level of detail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HydrationMode {
    /// Only whether the entity exists.
    Existence,
    /// These fields.
    Partial(BTreeSet<String>),
    /// Everything that the owner gives away.
    Full,
}

/// Why fields are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeError {
    /// `partial` names no field.
    NoFields,
    /// Fields are named although the mode is not `partial`.
    FieldsNotPartial,
    /// More fields than [`ENTITY_FIELDS_MAX`].
    TooManyFields,
    /// A field name is empty or longer than [`ENTITY_FIELD_LEN_MAX`] bytes.
    FieldName,
    /// There is no such mode.
    Unknown,
}

impl HydrationMode {
    /// Creates the mode for some fields.
    ///
    /// # Errors
    /// When there are none or too many, or a name is empty or too long.
    pub fn partial<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Result<Self, ModeError> {
        let fields: BTreeSet<String> = fields.into_iter().map(Into::into).collect();
        if fields.is_empty() {
            return Err(ModeError::NoFields);
        }
        if fields.len() > ENTITY_FIELDS_MAX {
            return Err(ModeError::TooManyFields);
        }
        if fields.iter().any(|field| field.is_empty() || field.len() > ENTITY_FIELD_LEN_MAX) {
            return Err(ModeError::FieldName);
        }
        Ok(Self::Partial(fields))
    }

    /// Creates a mode from the name that events use, and from its fields.
    ///
    /// # Errors
    /// When there is no such name, or the fields do not fit it.
    pub fn named(name: &str, fields: Option<Vec<String>>) -> Result<Self, ModeError> {
        match (name, fields) {
            ("partial", fields) => Self::partial(fields.unwrap_or_default()),
            ("existence", None) => Ok(Self::Existence),
            ("full", None) => Ok(Self::Full),
            ("existence" | "full", Some(_)) => Err(ModeError::FieldsNotPartial),
            _ => Err(ModeError::Unknown),
        }
    }

    /// The name that events use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Existence => "existence",
            Self::Partial(_) => "partial",
            Self::Full => "full",
        }
    }

    /// The fields of `partial`.
    #[must_use]
    pub const fn fields(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::Partial(fields) => Some(fields),
            Self::Existence | Self::Full => None,
        }
    }

    /// Returns whether whoever has this needs nothing more for `wanted`.
    #[must_use]
    pub fn covers(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Full, _) | (_, Self::Existence) => true,
            (Self::Partial(all), Self::Partial(some)) => some.is_subset(all),
            _ => false,
        }
    }

    /// The least that covers both; everything if that would be too many fields.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Partial(left), Self::Partial(right)) => {
                let both: BTreeSet<_> = left.union(right).cloned().collect();
                if both.len() > ENTITY_FIELDS_MAX { Self::Full } else { Self::Partial(both) }
            }
            (more, less) if more.covers(less) => more.clone(),
            (_, more) => more.clone(),
        }
    }
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFields => f.write_str("`partial` must name at least one field"),
            Self::FieldsNotPartial => f.write_str("only `partial` takes `fields`"),
            Self::TooManyFields => write!(f, "at most {ENTITY_FIELDS_MAX} fields may be named"),
            Self::FieldName => write!(f, "a field name must have 1 to {ENTITY_FIELD_LEN_MAX} bytes"),
            Self::Unknown => f.write_str("the mode must be `existence`, `partial` or `full`"),
        }
    }
}

impl std::error::Error for ModeError {}
