//! Subjects as channels, and filters as channels or patterns. A channel starts with the number of
//! its tokens. A pattern's `*` also matches dots, but with the number of tokens fixed it cannot: so
//! the server delivers, and counts as receivers, exactly those whose filter matches.

use tidegate_bus::{Subject, SubjectFilter};
use tidegate_core::bounds::SUBJECT_TOKENS_MAX;

use crate::subscriber::Channels;

/// The wildcard for one token, in a filter and in a pattern.
const ANY: &str = "*";
/// The wildcard for the rest of a filter.
const REST: &str = ">";

/// The channel of a subject.
pub(super) fn channel_of(prefix: &str, subject: &Subject) -> String {
    let text = subject.as_str();
    channel(prefix, text.split('.').count(), text)
}

/// The subject of a channel, as text.
pub(super) fn subject_of(channel: &str) -> &str {
    channel.rsplit(':').next().unwrap_or_default()
}

/// What to subscribe to for a filter.
pub(super) fn channels_of(prefix: &str, filter: &SubjectFilter) -> Channels {
    let tokens: Vec<&str> = filter.as_str().split('.').collect();
    if let Some((&REST, head)) = tokens.split_last() {
        let with_count = |count: usize| {
            let stars = std::iter::repeat_n(ANY, count - head.len());
            let text: Vec<&str> = head.iter().copied().chain(stars).collect();
            channel(prefix, count, &text.join("."))
        };
        return Channels::Patterns((tokens.len()..=SUBJECT_TOKENS_MAX).map(with_count).collect());
    }
    let text = channel(prefix, tokens.len(), filter.as_str());
    if tokens.contains(&ANY) { Channels::Patterns(vec![text]) } else { Channels::Exact(text) }
}

fn channel(prefix: &str, tokens: usize, text: &str) -> String {
    format!("{prefix}:bus:{tokens}:{text}")
}

#[cfg(test)]
mod tests {
    use tidegate_bus::FilterToken::{Any, Exact, Rest};

    use super::*;

    fn patterns(tokens: &[tidegate_bus::FilterToken<'_>]) -> Vec<String> {
        match channels_of("tg", &SubjectFilter::new(tokens.to_vec()).unwrap()) {
            Channels::Patterns(patterns) => patterns,
            Channels::Exact(channel) => vec![format!("={channel}")],
        }
    }

    #[test]
    fn a_filter_is_a_channel_or_patterns_of_fixed_length() {
        assert_eq!(patterns(&[Exact("a"), Exact("b.c")]), ["=tg:bus:2:a.b%2Ec"]);
        assert_eq!(patterns(&[Exact("a"), Any, Exact("*")]), ["tg:bus:3:a.*.%2A"]);
        let rest = patterns(&[Exact("a"), Any, Rest]);
        assert_eq!(rest[..2], ["tg:bus:3:a.*.*", "tg:bus:4:a.*.*.*"]);
        assert_eq!(rest.len(), SUBJECT_TOKENS_MAX - 2);
    }

    #[test]
    fn a_channel_has_its_subject() {
        let subject = Subject::new(["tg", "a:b", "é.*"]).unwrap();
        let channel = channel_of("my:pre.fix", &subject);
        assert_eq!(Subject::parse(subject_of(&channel)), Some(subject));
    }
}
