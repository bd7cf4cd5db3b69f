//! A role: its stored fields, how it is read from a body and how it is shown.

use serde_json::{Value, json};

use super::form::Form;
use super::names::trimmed;

/// The highest color.
const COLOR_MAX: u64 = 0x00ff_ffff;

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its id; @everyone has the guild's.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its colors: the first, and the two of a gradient.
    pub colors: [Option<u64>; 3],
    /// Whether its members are listed separately.
    pub hoist: bool,
    /// Its emoji.
    pub emoji: Option<String>,
    /// Its position; @everyone has 0.
    pub position: u64,
    /// Its permissions.
    pub permissions: u64,
    /// The bot it belongs to, its only member.
    pub bot: Option<u64>,
    /// Whether everyone may mention it.
    pub mentionable: bool,
}

/// The fields of a role in a body.
#[derive(Debug, Default)]
pub struct RoleDraft {
    name: Option<String>,
    colors: Option<[Option<u64>; 3]>,
    color: Option<u64>,
    hoist: Option<bool>,
    emoji: Option<Option<String>>,
    mentionable: Option<bool>,
    /// Its new permissions.
    pub permissions: Option<u64>,
}

impl RoleDraft {
    /// Reads a draft.
    #[must_use]
    pub fn read(form: &mut Form<'_>) -> Self {
        let emoji = form.text("unicode_emoji").map(str::to_owned);
        let mut colors = None;
        if let Some(given) = form.raw("colors") {
            let mut inner = Form::of(given);
            colors = Some(
                ["primary_color", "secondary_color", "tertiary_color"]
                    .map(|field| inner.number(field, 0..=COLOR_MAX)),
            );
            if inner.finish().is_err() {
                form.add_error("colors", "NUMBER_TYPE_COERCE", "A colour is 0 to 16777215.".to_owned());
            }
        }
        Self {
            name: form.name("name", trimmed),
            colors,
            color: form.number("color", 0..=COLOR_MAX),
            hoist: form.flag("hoist"),
            emoji: form.has("unicode_emoji").then_some(emoji),
            mentionable: form.flag("mentionable"),
            permissions: form.bits("permissions"),
        }
    }
}

impl Role {
    /// Creates a plain role.
    #[must_use]
    pub fn new(id: u64, name: &str, position: u64, permissions: u64) -> Self {
        Self {
            id,
            name: name.to_owned(),
            colors: [Some(0), None, None],
            hoist: false,
            emoji: None,
            position,
            permissions,
            bot: None,
            mentionable: false,
        }
    }

    /// Applies the fields of a draft.
    pub fn apply(&mut self, draft: RoleDraft) {
        self.name = draft.name.unwrap_or(std::mem::take(&mut self.name));
        if let Some(color) = draft.color {
            self.colors = [Some(color), None, None];
        }
        self.colors = draft.colors.unwrap_or(self.colors);
        self.hoist = draft.hoist.unwrap_or(self.hoist);
        self.emoji = draft.emoji.unwrap_or(self.emoji.take());
        self.mentionable = draft.mentionable.unwrap_or(self.mentionable);
        self.permissions = draft.permissions.unwrap_or(self.permissions);
    }

    /// Returns it as the API shows it.
    #[must_use]
    pub fn json(&self) -> Value {
        let [primary, secondary, tertiary] = self.colors;
        let primary = primary.unwrap_or(0);
        let mut shown = json!({
            "id": self.id.to_string(),
            "name": self.name,
            "description": null,
            "permissions": self.permissions.to_string(),
            "position": self.position,
            "color": primary,
            "colors": {"primary_color": primary, "secondary_color": secondary, "tertiary_color": tertiary},
            "hoist": self.hoist,
            "managed": self.bot.is_some(),
            "mentionable": self.mentionable,
            "icon": null,
            "unicode_emoji": self.emoji,
            "flags": 0,
        });
        if let Some(bot) = self.bot {
            shown["tags"] = json!({ "bot_id": bot.to_string() });
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact JSON of a role.
    #[test]
    fn a_role_is_shown_as_documented() {
        let body =
            json!({"name": " Desk ", "permissions": "1024", "hoist": true, "color": 255, "icon": null});
        let mut form = Form::of(&body);
        let mut role = Role::new(7, "new role", 1, 0);
        role.apply(RoleDraft::read(&mut form));
        form.finish().unwrap();
        assert_eq!(
            role.json().to_string(),
            concat!(
                r#"{"color":255,"colors":{"primary_color":255,"secondary_color":null,"tertiary_color":null},"#,
                r#""description":null,"flags":0,"hoist":true,"icon":null,"id":"7","managed":false,"mentionable":false,"#,
                r#""name":"Desk","permissions":"1024","position":1,"unicode_emoji":null}"#
            )
        );
        role.apply(RoleDraft::default());
        assert_eq!((role.name.as_str(), role.permissions, role.hoist), ("Desk", 1_024, true));
    }
}
