//! The keys that seal stored responses: in an environment variable, never in the file. They are
//! validated where the variable is named, and never shown.

use tidegate_idempotency::SealingKeys;
use tidegate_upstream::Secret;

use super::ParseContext;
use super::value::LocatedValue;

/// The keys that seal stored responses.
#[derive(Clone, Debug)]
pub struct SealKeys {
    /// The environment variable that holds them.
    pub variable: String,
    /// The value of the variable.
    pub keys: Secret,
}

/// Reads the variable that `seal_key_env` names; an empty name means none.
pub(super) fn read(
    variable: Option<LocatedValue<String>>,
    reading: &mut ParseContext<'_>,
) -> Option<SealKeys> {
    let found = variable.filter(|found| !found.value.is_empty())?;
    let keys = reading.secret(&found)?;
    if let Err(bad) = SealingKeys::parse(&found.value, &keys) {
        reading.problems.push(found.problem(format!("It cannot be used: {bad}.")));
    }
    Some(SealKeys { variable: found.value, keys: Secret::new(keys) })
}
