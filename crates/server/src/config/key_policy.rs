//! Settings of idempotency keys that the server's own routes and the proxy share, with the same
//! names and meanings. A key that is not set leaves the default.

use tidegate_idempotency::{
    BodyComparison, KeyAlphabet, Policy, RefusalDialect, StoreUnavailablePolicy, UnknownOutcomePolicy,
};

use super::problem::ConfigProblem;
use super::section::Section;

const ON_UNKNOWN: [(&str, UnknownOutcomePolicy); 2] =
    [("release", UnknownOutcomePolicy::Release), ("hold", UnknownOutcomePolicy::Hold)];
const DIALECTS: [(&str, RefusalDialect); 2] =
    [("tidegate", RefusalDialect::Tidegate), ("ietf", RefusalDialect::Ietf)];
const ALPHABETS: [(&str, KeyAlphabet); 2] =
    [("plain", KeyAlphabet::Plain), ("printable", KeyAlphabet::Printable)];
const COMPARISONS: [(&str, BodyComparison); 2] =
    [("bytes", BodyComparison::Bytes), ("json", BodyComparison::Json)];
const STORE_AWAY: [(&str, StoreUnavailablePolicy); 2] =
    [("refuse", StoreUnavailablePolicy::Refuse), ("pass", StoreUnavailablePolicy::PassOn)];

pub(super) fn read(section: &mut Section<'_>, policy: &mut Policy, problems: &mut Vec<ConfigProblem>) {
    replace_if_set(&mut policy.on_unknown, section.choice("on_unknown", &ON_UNKNOWN, problems));
    replace_if_set(&mut policy.keep_client_errors, section.switch("keep_client_errors", problems));
    replace_if_set(&mut policy.keep_server_errors, section.switch("keep_server_errors", problems));
    replace_if_set(&mut policy.dialect, section.choice("dialect", &DIALECTS, problems));
    replace_if_set(&mut policy.key_alphabet, section.choice("key_alphabet", &ALPHABETS, problems));
    replace_if_set(&mut policy.fingerprint, section.choice("fingerprint", &COMPARISONS, problems));
    replace_if_set(&mut policy.store_unavailable, section.choice("store_away", &STORE_AWAY, problems));
    replace_if_set(&mut policy.answer_max, section.size("answer_max", problems));
}

/// Replaces a value if another one is set.
pub(super) fn replace_if_set<T>(place: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *place = said;
    }
}
