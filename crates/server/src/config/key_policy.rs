//! Settings of idempotency keys that the server's own routes and the proxy share, under one name and
//! with one meaning. What is not said stays as it is.

use tidegate_idempotency::{BodyComparison, Dialect, KeyAlphabet, OnUnknown, Policy, StoreAway};

use super::problem::Problem;
use super::section::Section;

const ON_UNKNOWN: [(&str, OnUnknown); 2] = [("release", OnUnknown::Release), ("hold", OnUnknown::Hold)];
const DIALECTS: [(&str, Dialect); 2] = [("tidegate", Dialect::Tidegate), ("ietf", Dialect::Ietf)];
const ALPHABETS: [(&str, KeyAlphabet); 2] =
    [("plain", KeyAlphabet::Plain), ("printable", KeyAlphabet::Printable)];
const COMPARISONS: [(&str, BodyComparison); 2] =
    [("bytes", BodyComparison::Bytes), ("json", BodyComparison::Json)];
const STORE_AWAY: [(&str, StoreAway); 2] = [("refuse", StoreAway::Refuse), ("pass", StoreAway::PassOn)];

pub(super) fn read(section: &mut Section<'_>, policy: &mut Policy, problems: &mut Vec<Problem>) {
    set(&mut policy.on_unknown, section.choice("on_unknown", &ON_UNKNOWN, problems));
    set(&mut policy.keep_client_errors, section.switch("keep_client_errors", problems));
    set(&mut policy.keep_server_errors, section.switch("keep_server_errors", problems));
    set(&mut policy.dialect, section.choice("dialect", &DIALECTS, problems));
    set(&mut policy.key_alphabet, section.choice("key_alphabet", &ALPHABETS, problems));
    set(&mut policy.fingerprint, section.choice("fingerprint", &COMPARISONS, problems));
    set(&mut policy.store_away, section.choice("store_away", &STORE_AWAY, problems));
    set(&mut policy.answer_max, section.size("answer_max", problems));
}

/// Puts what was said in the place of what was there.
pub(super) fn set<T>(place: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *place = said;
    }
}
