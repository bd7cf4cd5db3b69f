//! Why an operator gives a command: the field `reason`, which the audit log keeps.

use tidegate_core::Time;
use tidegate_core::bounds::NOTE_LEN_MAX;

use crate::edge::content::RequestBody;
use crate::error::Result;
use crate::wire::field::Field;
use crate::wire::object::{Fields, read};

/// Reads a body that may hold a reason and nothing else.
pub(super) async fn read_reason_only(body: RequestBody) -> Result<()> {
    let body = body.read().await?;
    if body.is_empty() {
        return Ok(());
    }
    let Fields { values: [raw], mut problems } = read(&body, &["reason"])?;
    problems.check(read_reason(Field { name: "reason", raw }));
    problems.finish()
}

/// Reads a body that may hold a reason, and before when what is run again has ended.
pub(super) async fn read_reason_and_end(body: RequestBody) -> Result<Option<Time>> {
    let body = body.read().await?;
    if body.is_empty() {
        return Ok(None);
    }
    let Fields { values: [raw, before], mut problems } = read(&body, &["reason", "finished_before"])?;
    problems.check(read_reason(Field { name: "reason", raw }));
    let before = problems.check(Field { name: "finished_before", raw: before }.time());
    problems.finish()?;
    Ok(before)
}

/// Reads a body that may hold a reason, and whether the command is refused when it would change
/// nothing.
pub(super) async fn read_reason_and_strict(body: RequestBody) -> Result<bool> {
    let body = body.read().await?;
    if body.is_empty() {
        return Ok(false);
    }
    let Fields { values: [raw, strict], mut problems } = read(&body, &["reason", "strict"])?;
    problems.check(read_reason(Field { name: "reason", raw }));
    let strict = problems.check(Field { name: "strict", raw: strict }.flag());
    problems.finish()?;
    Ok(strict.unwrap_or(false))
}

/// Reads a reason, which fits on a line of the audit log.
pub(super) fn read_reason(field: Field<'_>) -> Result<Option<String>> {
    let reason = field.text()?;
    let text = reason.as_deref().unwrap_or_default();
    field.check_line(text, 0..=NOTE_LEN_MAX)?;
    Ok(reason)
}
