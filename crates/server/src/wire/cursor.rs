//! Where a page of operations goes on: the last id, with a checksum over it and the filter. One that was made up, or
//! belongs to another list, is refused.

use tidegate::{Code, Error, Filter, Result};
use tidegate_core::OperationId;
use tidegate_core::fingerprint::{Fingerprint, hex};

use super::time::At;

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
    id.ok_or_else(|| {
        let message = "This cursor was not given for this list; start again without one.";
        Error::new(Code::BadCursor, message).field("cursor")
    })
}

fn sum(id: OperationId, filter: &Filter) -> String {
    let text = |text: &Option<std::sync::Arc<str>>| {
        text.as_deref().map_or_else(String::new, |text| format!("={text}"))
    };
    let time = |time: Option<tidegate_core::Time>| time.map_or_else(String::new, |time| At(time).to_string());
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
    hex(&sum.finish()[..SUM_LEN / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Seq, State, Time};

    #[test]
    fn only_a_cursor_of_the_same_list_is_taken() {
        let id = OperationId::new(Time::from_millis(7), 0, Seq(9));
        let filter = Filter { group: Some("g".into()), ..Filter::default() };
        let cursor = write(id, &filter);
        assert_eq!(read(&cursor, &filter), Ok(id));
        let other = Filter { states: vec![State::Failed], ..filter.clone() };
        let made_up =
            [String::new(), "x".into(), "é".repeat(21), format!("{cursor}0"), cursor.replace('9', "8")];
        assert!(read(&cursor, &other).is_err());
        for text in made_up {
            assert_eq!(read(&text, &filter).unwrap_err().code, Code::BadCursor, "{text}");
        }
    }
}
