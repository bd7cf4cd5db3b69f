//! What every page for operators is made with: the language of the reader, the time, and fields of
//! the API's responses.

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tidegate_core::Time;

use super::operator_words::OperatorWords;
use super::parts::{span_in, state_in};
use super::words::Language;
use super::{Frame, framed};
use crate::api::local::LocalApi;
use crate::wire::time::{self, Timestamp};

/// What is escaped in a part of a URL: all but what is unreserved.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A reader of a page.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub language: Language,
    pub words: &'static OperatorWords,
    pub now: Time,
}

impl View {
    pub(super) fn new(headers: &HeaderMap, api: &LocalApi) -> Self {
        Self::at(Language::preferred(headers), api.server.clock.now())
    }

    /// A reader of this language, at this time.
    pub(super) const fn at(language: Language, now: Time) -> Self {
        Self { language, words: language.operator_words(), now }
    }

    /// A page that is not live.
    pub(super) fn page(&self, title: &str, content: &Markup) -> Response {
        framed(&Frame { title, language: self.language, regions: None }, content).into_response()
    }

    /// A page that refreshes its live regions from itself.
    pub(super) fn live_page(&self, title: &str, content: &Markup) -> Response {
        framed(&Frame { title, language: self.language, regions: Some("") }, content).into_response()
    }

    /// A state in the language of the reader.
    pub(super) fn state(&self, word: &str) -> Markup {
        state_in(word, self.words.state(word))
    }

    /// How long ago, with the time itself as a tooltip.
    pub(super) fn ago(&self, at: Time) -> Markup {
        html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (self.span(at)) } }
    }

    /// How long it has lasted since then, with the time itself as a tooltip.
    pub(super) fn lasting(&self, at: Time) -> Markup {
        html! { (self.words.lasting) " " (self.ago(at)) }
    }

    /// The time until then, with the time itself as a tooltip.
    pub(super) fn within(&self, at: Time) -> Markup {
        let left = span_in(at.since(self.now), self.language.words().units);
        html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (self.words.within) " " (left) } }
    }

    /// The time until then after these words, with the time itself as a tooltip; now, if it is less
    /// than a second.
    pub(super) fn until(&self, at: Time, before: &str) -> Markup {
        let left = at.since(self.now);
        let shown = match left.as_secs() {
            0 => self.words.now.to_owned(),
            _ => format!("{before} {}", span_in(left, self.language.words().units)),
        };
        html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (shown) } }
    }

    /// When something that fails is tried again, with the time itself as a tooltip.
    pub(super) fn tried_again(&self, at: Time) -> Markup {
        match at.since(self.now).as_secs() {
            0 => html! { (self.words.tried_again_now) },
            _ => self.until(at, self.words.tried_again_in),
        }
    }

    /// A time, and how long ago it was.
    pub(super) fn when(&self, at: Time) -> Markup {
        html! { (Timestamp(at)) " (" (self.ago(at)) " " (self.words.ago) ")" }
    }

    /// The time since then, in one or two units.
    pub(super) fn span(&self, at: Time) -> String {
        span_in(self.now.since(at), self.language.words().units)
    }
}

/// A field as text; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A field as a number; zero where there is none.
pub(super) fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

/// A field as a time.
pub(super) fn time_in(value: &Value, name: &str) -> Option<Time> {
    value[name].as_str().and_then(time::parse)
}

/// The items of a list.
pub(super) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// A text as a part of a URL.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The fields of a form that were filled in. A form sends all of them, empty ones too.
pub(super) fn filled_in(form: &str) -> String {
    let pairs =
        form.split('&').filter(|pair| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty()));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_of_a_form_are_left_out() {
        assert_eq!(filled_in("a=1&b=&c=x%20y&d"), "a=1&c=x%20y");
        assert_eq!(filled_in(""), "");
    }

    #[test]
    fn a_time_to_come_is_a_span() {
        let view = View::at(Language::English, Time::from_millis(1_000));
        let until = view.within(Time::from_millis(4_000)).into_string();
        assert!(until.contains(">in 3 s<"), "{until}");
    }

    #[test]
    fn only_what_is_reserved_is_escaped() {
        assert_eq!(escape("op_01-a.b~c/d é&"), "op_01-a.b~c%2Fd%20%C3%A9%26");
    }
}
