//! Names can be parsed back, and Discord's normalization does not change them.

use proptest::prelude::*;

use super::*;

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// OPS-13: the documented forms.
#[test]
fn ops_13_names_carry_their_keys() {
    assert_eq!(managed_name("SSO", "Moderators", &key("mods")), "〚SSO〛 Moderators 〔mods〕");
    assert_eq!(managed_channel_name("Приёмная", &key("intake")), "priemnaya-intake");
    assert_eq!(managed_channel_name("Щит & Меч: чат", &key("Shield-Chat")), "shchit-mech-chat-shield_chat");
    assert_eq!(managed_channel_name("雑談 ルーム", &key("talk")), "雑談-ルーム-talk");
    assert_eq!(managed_channel_name("!?", &key("odd")), "channel-odd");
    assert_eq!(message_marker("SSO", &key("welcome")), "-# 〔SSO:welcome〕");
}

/// OPS-13, OPS-16: manual changes to a name are tolerated as long as the brackets are there.
#[test]
fn ops_13_a_name_is_read_back() {
    let read = |name: &str| {
        parse_managed_name(name).map(|m| (m.prefix.to_owned(), m.name.to_owned(), m.key.to_string()))
    };
    let some = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(read("〚SSO〛 Moderators 〔mods〕"), some("SSO", "Moderators", "mods"));
    assert_eq!(read(" 〚SSO〛Mods〔mods〕 "), some("SSO", "Mods", "mods"));
    assert_eq!(read("〚X〛 a 〔b〕 〔c〕"), some("X", "a 〔b〕", "c"));
    for other in ["Moderators", "〚SSO〛 Moderators", "SSO 〔mods〕", "〚〛 a 〔b〕", "〚SSO〛 a 〔b c〕"]
    {
        assert_eq!(read(other), None, "{other}");
    }
    assert_eq!(short_key_of("priemnaya-intake"), Some("intake"));
    assert_eq!(short_key_of("a-b-staff_room"), Some("staff_room"));
    for other in ["general", "-intake", "a-", "a-Б"] {
        assert_eq!(short_key_of(other), None, "{other}");
    }
    assert_eq!(parse_message_marker("Hello\n\n-# 〔SSO:welcome〕 "), Some(("SSO", key("welcome"))));
    assert_eq!(parse_message_marker("〔SSO:welcome〕\nHello"), None);
}

proptest! {
    /// OPS-13: parse(make(x)) == x, for roles, categories and messages.
    #[test]
    fn ops_13_what_is_made_is_read(
        prefix in "[A-Za-zА-я0-9_-]{1,16}", name in "[^〚〛〔〕]{0,60}", text in "[A-Za-z0-9_-]{1,32}", body in ".{0,60}"
    ) {
        let key = key(&text);
        let made = managed_name(&prefix, &name, &key);
        let shown = normalize_display_name(&name);
        prop_assert_eq!(parse_managed_name(&made), Some(ManagedName { prefix: &prefix, name: &shown, key: key.clone() }));
        prop_assert_eq!(normalize_display_name(&made), made.as_str(), "Discord takes nothing off it");
        let message = format!("{body}\n{}", message_marker(&prefix, &key));
        prop_assert_eq!(parse_message_marker(&message), Some((prefix.as_str(), key)));
    }

    /// OPS-13: a channel's name ends in its short key, and Discord keeps it as it is.
    #[test]
    fn ops_13_channel_names_stay_as_they_are(name in "\\PC{0,60}", text in "[A-Za-z0-9_-]{1,32}") {
        let key = key(&text);
        let made = managed_channel_name(&name, &key);
        let short = key.short();
        prop_assert_eq!(short_key_of(&made), Some(short.as_str()));
        prop_assert_eq!(slug::normalize(&made), made.as_str());
        prop_assert_eq!(made.trim(), made.as_str());
    }

    /// OPS-13: normalizing twice is normalizing once, and a slug of a slug is that slug.
    #[test]
    fn ops_13_normalising_is_idempotent(name in any::<String>()) {
        let once = slug::normalize(&name);
        prop_assert_eq!(slug::normalize(&once), once);
        let slug = slug::slugify(&name);
        prop_assert_eq!(slug::slugify(&slug), slug);
        let shown = normalize_display_name(&name);
        prop_assert_eq!(normalize_display_name(&shown), shown);
    }
}
