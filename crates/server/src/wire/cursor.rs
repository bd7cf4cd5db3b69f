//! The cursor of a list: the last id or name, with a checksum over it and the filter. A cursor that
//! was made up or belongs to another list is refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate::Filter;
use tidegate_core::OperationId;
use tidegate_core::fingerprint::{Fingerprint, hex};

use super::outcome_filter::given_parts;
use super::time::Timestamp;
use crate::error::{Error, ErrorCode, Result};

const SUM_LEN: usize = 16;

pub(crate) fn write(id: OperationId, filter: &Filter) -> String {
    format!("{}{}", id.to_string().trim_start_matches("op_"), sum(id, filter))
}

/// # Errors
/// `BadCursor` when this server did not make it for this list.
pub(crate) fn read(text: &str, filter: &Filter) -> Result<OperationId> {
    let id = text
        .len()
        .checked_sub(SUM_LEN)
        .and_then(|end| text.split_at_checked(end))
        .and_then(|(id, given)| Some((format!("op_{id}").parse::<OperationId>().ok()?, given)))
        .filter(|(id, given)| sum(*id, filter) == *given)
        .map(|(id, _)| id);
    id.ok_or_else(bad_cursor)
}

/// The error for a cursor that this server did not issue for this list.
pub(crate) fn bad_cursor() -> Error {
    let message = "This cursor was not issued for this list; start again without one.";
    Error::new(ErrorCode::BadCursor, message).field("cursor")
}

/// Writes the cursor of a list that continues after a text. `list` identifies the list and its
/// filter.
pub(crate) fn write_text(next: &str, list: &str) -> String {
    format!("{}{}", URL_SAFE_NO_PAD.encode(next), sum_of_text(next, list))
}

/// # Errors
/// `BadCursor` when this server did not make it for this list.
pub(crate) fn read_text(text: &str, list: &str) -> Result<String> {
    let (next, given) =
        text.len().checked_sub(SUM_LEN).and_then(|end| text.split_at_checked(end)).ok_or_else(bad_cursor)?;
    let next = URL_SAFE_NO_PAD.decode(next).ok().and_then(|next| String::from_utf8(next).ok());
    next.filter(|next| sum_of_text(next, list) == given).ok_or_else(bad_cursor)
}

fn sum_of_text(next: &str, list: &str) -> String {
    let sum = Fingerprint::of("text cursor").part(next.as_bytes()).part(list.as_bytes());
    hex(&sum.finish()[..SUM_LEN / 2])
}

fn sum(id: OperationId, filter: &Filter) -> String {
    let text = |text: &Option<std::sync::Arc<str>>| {
        text.as_deref().map_or_else(String::new, |text| format!("={text}"))
    };
    let time =
        |time: Option<tidegate_core::Time>| time.map_or_else(String::new, |time| Timestamp(time).to_string());
    let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
    let sum = Fingerprint::of("cursor")
        .part(id.to_string().as_bytes())
        .part(text(&filter.group).as_bytes())
        .part(text(&filter.kind).as_bytes())
        .part(states.join(",").as_bytes())
        .part(text(&filter.upstream).as_bytes())
        .part(text(&filter.dedupe_key).as_bytes())
        .part(time(filter.created_after).as_bytes())
        .part(time(filter.created_before).as_bytes());
    let outcome = given_parts(&filter.outcome);
    let sum = outcome.fold(sum, |sum, (name, value)| sum.part(name.as_bytes()).part(value.as_bytes()));
    hex(&sum.finish()[..SUM_LEN / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Seq, State, Time};

    #[test]
    fn only_a_text_cursor_of_the_same_list_is_taken() {
        let cursor = write_text("acme POST /x é", "scope=acme");
        assert_eq!(read_text(&cursor, "scope=acme").as_deref(), Ok("acme POST /x é"));
        for (text, list) in [(cursor.as_str(), ""), ("", ""), ("x", ""), (&cursor[1..], "scope=acme")] {
            assert_eq!(read_text(text, list).unwrap_err().code, ErrorCode::BadCursor, "{text} {list}");
        }
    }

    #[test]
    fn only_a_cursor_of_the_same_list_is_taken() {
        let id = OperationId::new(Time::from_millis(7), 0, Seq(9));
        let filter = Filter::default().with_group("g");
        let cursor = write(id, &filter);
        assert_eq!(read(&cursor, &filter), Ok(id));
        let other = filter.clone().with_states(vec![State::Failed]);
        let made_up =
            [String::new(), "x".into(), "é".repeat(21), format!("{cursor}0"), cursor.replace('9', "8")];
        assert!(read(&cursor, &other).is_err());
        for text in made_up {
            assert_eq!(read(&text, &filter).unwrap_err().code, ErrorCode::BadCursor, "{text}");
        }
    }
}
