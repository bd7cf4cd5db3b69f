//! The keys that stored answers are sealed with: a variable of the environment, never the file. They are checked where the
//! variable is named, and never told.

use tidegate_idempotency::SealingKeys;
use tidegate_upstream::Secret;

use super::ParseContext;
use super::value::LocatedValue;

/// Keys to seal with.
#[derive(Clone, Debug)]
pub struct SealKeys {
    /// The variable that has them.
    pub variable: String,
    /// As it has them.
    pub keys: Secret,
}

/// Reads what `seal_key_env` names; an empty name is none.
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
