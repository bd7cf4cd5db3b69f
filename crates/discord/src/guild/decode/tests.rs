//! Guilds in Discord's format are decoded correctly.

use serde_json::json;
use twilight_model::guild as theirs;

use super::*;

fn bytes(value: &serde_json::Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn role() -> serde_json::Value {
    json!({
        "id": "11", "name": "Mods", "permissions": "1024", "color": 1, "hoist": true, "mentionable": true,
        "colors": {"primary_color": 3447003, "secondary_color": null, "tertiary_color": null},
        "position": 4, "managed": false, "flags": 0, "icon": null, "unicode_emoji": null, "description": "new"
    })
}

fn channel() -> serde_json::Value {
    json!({
        "id": "21", "guild_id": "1", "type": 0, "name": "a-b", "position": 3, "parent_id": "20", "topic": "T",
        "nsfw": true, "rate_limit_per_user": 5, "last_message_id": null, "flags": 0,
        "permission_overwrites": [
            {"id": "1", "type": 0, "allow": "0", "deny": "1024"}, {"id": "99", "type": 1, "allow": "2048", "deny": "0"}
        ]
    })
}

/// OPS-14: the relevant fields are decoded from a guild as Discord lists it; unknown types and
/// fields do no harm.
#[test]
fn ops_14_a_guild_is_read() {
    let channels =
        json!([channel(), {"id": "22", "type": 77, "name": null, "topic": null, "parent_id": null}]);
    let guild = Guild::decode(Id(1), &bytes(&json!([role()])), &bytes(&channels)).unwrap();
    let role = guild.role(Id(11)).unwrap();
    assert_eq!(
        (role.name.as_str(), role.permissions.0, role.color, role.position),
        ("Mods", 1024, 3447003, 4)
    );
    let channel = guild.channel(Id(21)).unwrap();
    assert_eq!((channel.parent, channel.topic.as_str(), channel.slow_mode), (Some(Id(20)), "T", 5));
    let members: Vec<_> = channel.overwrites.iter().map(|overwrite| overwrite.of_member).collect();
    assert_eq!(members, [false, true]);
    assert_eq!(guild.channel(Id(22)).unwrap().kind, 77);
}

/// OPS-14: an established Discord library decodes the same from the same text.
#[test]
fn ops_14_others_read_the_same() {
    let guild = Guild::decode(Id(1), &bytes(&json!([role()])), &bytes(&json!([channel()]))).unwrap();
    let their_role: theirs::Role = serde_json::from_value(role()).unwrap();
    let role = &guild.roles[0];
    assert_eq!(role.id.0, their_role.id.get());
    assert_eq!(role.permissions.0, their_role.permissions.bits());
    assert_eq!(role.color, their_role.colors.primary_color);
    assert_eq!((role.hoist, role.position), (their_role.hoist, their_role.position));
    let their_channel: twilight_model::channel::Channel = serde_json::from_value(channel()).unwrap();
    let channel = &guild.channels[0];
    assert_eq!(Some(channel.slow_mode), their_channel.rate_limit_per_user.map(u32::from));
    assert_eq!(channel.parent.map(|id| id.0), their_channel.parent_id.map(twilight_model::id::Id::get));
    assert_eq!(Some(channel.overwrites.len()), their_channel.permission_overwrites.map(|list| list.len()));
}

/// OPS-20: only the bot's messages count, and a page that overlaps the last one counts once.
#[test]
fn ops_20_only_own_messages_count() {
    let mut guild = Guild::decode(Id(1), b"[]", b"[]").unwrap();
    let by =
        |id: &str, author: &str| json!({"id": id, "content": "x", "author": {"id": author, "username": "u"}});
    guild.add_messages(Id(5), Id(7), &bytes(&json!([by("31", "7"), by("32", "8")]))).unwrap();
    guild.add_messages(Id(5), Id(7), &bytes(&json!([by("31", "7"), by("30", "7")]))).unwrap();
    let ids: Vec<_> = guild.messages[&Id(5)].iter().map(|message| message.id.0).collect();
    assert_eq!(ids, [30, 31]);
}

/// OPS-22: the error for an unreadable response reveals nothing of its content.
#[test]
fn ops_22_nothing_of_a_broken_answer_is_told() {
    let error = Guild::decode(Id(1), br#"{"message": "secret"}"#, b"[]").unwrap_err();
    assert_eq!(error.to_string(), "Discord's list of roles cannot be read, from line 1, column 0 on.");
}
