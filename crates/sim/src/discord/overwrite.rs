//! An overwrite: what a role or a member may do in one channel, differing from the guild.

use serde_json::{Value, json};

use super::form::Form;

/// Most overwrites per body.
pub const OVERWRITES_BODY_MAX: usize = 100;
/// Most overwrites per channel.
pub const OVERWRITES_MAX: usize = 1_000;

/// The kind of an overwrite's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverwriteKind {
    /// A role.
    Role,
    /// A member.
    Member,
}

/// An overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrite {
    /// The id of the role or member.
    pub id: u64,
    /// Which of the two it is.
    pub kind: OverwriteKind,
    /// Permissions granted.
    pub allow: u64,
    /// Permissions denied.
    pub deny: u64,
}

impl Overwrite {
    /// Returns it as the API shows it.
    #[must_use]
    pub fn json(&self) -> Value {
        let kind = u8::from(self.kind == OverwriteKind::Member);
        let (id, allow, deny) = (self.id.to_string(), self.allow.to_string(), self.deny.to_string());
        json!({ "id": id, "type": kind, "allow": allow, "deny": deny })
    }

    /// Returns all bits that it names.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.allow | self.deny
    }
}

/// Reads an overwrite whose id is `id`, or in the form.
pub fn read(form: &mut Form<'_>, id: Option<u64>) -> Option<Overwrite> {
    form.require("type");
    if id.is_none() {
        form.require("id");
    }
    let id = id.or_else(|| form.id("id"));
    let kind = form.number("type", 0..=1);
    let (allow, deny) = (form.bits("allow").unwrap_or(0), form.bits("deny").unwrap_or(0));
    let kind = if kind? == 0 { OverwriteKind::Role } else { OverwriteKind::Member };
    Some(Overwrite { id: id?, kind, allow, deny })
}

/// Reads the overwrites of a body; of several for one id the last one counts.
pub fn list(form: &mut Form<'_>) -> Option<Vec<Overwrite>> {
    let given = form.list("permission_overwrites", OVERWRITES_BODY_MAX, |form| read(form, None))?;
    let mut kept: Vec<Overwrite> = Vec::with_capacity(given.len());
    for overwrite in given {
        put(&mut kept, overwrite);
    }
    Some(kept)
}

/// Inserts an overwrite, or replaces the one with the same id.
pub fn put(overwrites: &mut Vec<Overwrite>, overwrite: Overwrite) {
    match overwrites.iter_mut().find(|known| known.id == overwrite.id) {
        Some(known) => *known = overwrite,
        None => overwrites.push(overwrite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_shown() {
        let body = json!({ "permission_overwrites": [
            {"id": "5", "type": 0, "allow": "1024"}, {"id": "6", "type": 1}, {"id": "5", "type": 0, "deny": "8"},
        ] });
        let mut form = Form::of(&body);
        let read = list(&mut form).unwrap();
        form.finish().unwrap();
        assert_eq!(
            Value::from_iter(read.iter().map(Overwrite::json)).to_string(),
            r#"[{"allow":"0","deny":"8","id":"5","type":0},{"allow":"0","deny":"0","id":"6","type":1}]"#
        );
    }
}
