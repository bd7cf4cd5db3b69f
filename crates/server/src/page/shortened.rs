//! Addresses that have no view of their own, and that a person gets by shortening another one: they
//! lead to the view that has what they name.

use axum::response::Redirect;

/// What runs elsewhere is in the list of work.
pub(crate) async fn awaiting() -> Redirect {
    Redirect::to("/workers")
}

/// What actions were done is in the audit log.
pub(crate) async fn actions() -> Redirect {
    Redirect::to("/audit")
}
