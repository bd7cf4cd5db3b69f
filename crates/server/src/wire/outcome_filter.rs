//! The parts of a filter that are about faults and ends, as lists take them in a query and commands
//! in a body.

use serde_json::value::RawValue;
use tidegate::OutcomeFilter;
use tidegate_core::FaultClass;

use super::field::Field;
use super::problems::RequestProblems;
use super::time::Timestamp;
use crate::edge::query::{Query, bad_parameter};

/// Their names.
pub(crate) const OUTCOME_PARTS: [&str; 6] =
    ["error", "fault_class", "fault_message", "may_have_happened", "finished_after", "finished_before"];

/// The classes by their names.
fn classes() -> [(&'static str, FaultClass); FaultClass::ALL.len()] {
    FaultClass::ALL.map(|class| (class.as_str(), class))
}

/// Reads them from the query of a list.
pub(crate) fn read_query(query: &mut Query) -> OutcomeFilter {
    let [error, class, message, happened, finished_after, finished_before] = OUTCOME_PARTS;
    let mut outcome = OutcomeFilter::default();
    outcome.error = query.take(error).map(Into::into);
    outcome.fault_class = query.read(class, |word| {
        let known = FaultClass::ALL.map(FaultClass::as_str).join(", ");
        FaultClass::parse(word).ok_or_else(|| bad_parameter(class, &format!("must be one of {known}")))
    });
    outcome.fault_message = query.take(message).map(Into::into);
    outcome.may_have_happened = query.flag(happened);
    outcome.finished_after = query.time(finished_after);
    outcome.finished_before = query.time(finished_before);
    outcome
}

/// Reads them from the fields of a command, in the order of their names.
pub(crate) fn read_fields(values: &[Option<&RawValue>], problems: &mut RequestProblems) -> OutcomeFilter {
    let field =
        |place: usize| Field { name: OUTCOME_PARTS[place], raw: values.get(place).copied().flatten() };
    let mut outcome = OutcomeFilter::default();
    outcome.error = problems.check(field(0).filled_text()).map(Into::into);
    outcome.fault_class = problems.check(field(1).word(&classes()));
    outcome.fault_message = problems.check(field(2).filled_text()).map(Into::into);
    outcome.may_have_happened = problems.check(field(3).flag());
    outcome.finished_after = problems.check(field(4).time());
    outcome.finished_before = problems.check(field(5).time());
    outcome
}

/// The parts that are given, each with its value as in a query.
pub(crate) fn given_parts(outcome: &OutcomeFilter) -> impl Iterator<Item = (&'static str, String)> {
    let values = [
        outcome.error.as_deref().map(str::to_owned),
        outcome.fault_class.map(|class| class.to_string()),
        outcome.fault_message.as_deref().map(str::to_owned),
        outcome.may_have_happened.map(|wanted| wanted.to_string()),
        outcome.finished_after.map(|after| Timestamp(after).to_string()),
        outcome.finished_before.map(|before| Timestamp(before).to_string()),
    ];
    OUTCOME_PARTS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use tidegate_core::Time;

    use super::*;

    /// A node asks the owners with what it was asked.
    #[test]
    fn what_is_written_is_read_again() {
        let mut outcome = OutcomeFilter::default();
        assert_eq!(given_parts(&outcome).count(), 0);
        outcome.error = Some("no Entry".into());
        outcome.fault_class = Some(FaultClass::NotFound);
        outcome.fault_message = Some("50 % & more".into());
        outcome.may_have_happened = Some(false);
        outcome.finished_after = Some(Time::from_millis(7));
        outcome.finished_before = Some(Time::from_millis(9));
        let pairs: Vec<String> = given_parts(&outcome)
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC)))
            .collect();
        assert_eq!(pairs.len(), OUTCOME_PARTS.len());
        let mut query = Query::parse(&pairs.join("&"));
        assert_eq!(read_query(&mut query), outcome);
        assert!(query.finish().is_ok());
    }
}
