//! One row of the table of routes: where, how, and with which scope. The table is the only place that says so, and a
//! test holds the description of the API against it.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app::Shared;
use crate::config::Scope;

/// One call that is served.
pub(crate) struct Route {
    pub path: &'static str,
    /// What a caller's token must allow; without one anybody may call.
    pub scope: Option<Scope>,
    pub call: MethodRouter<Shared>,
    #[cfg(test)]
    pub method: MethodFilter,
}

impl Route {
    fn new<H: Handler<T, Shared>, T: 'static>(
        method: MethodFilter,
        scope: Option<Scope>,
        path: &'static str,
        handler: H,
    ) -> Self {
        Self {
            path,
            scope,
            call: on(method, handler),
            #[cfg(test)]
            method,
        }
    }
}

pub(crate) fn get<H: Handler<T, Shared>, T: 'static>(
    scope: impl Into<Option<Scope>>,
    path: &'static str,
    handler: H,
) -> Route {
    Route::new(MethodFilter::GET, scope.into(), path, handler)
}

pub(crate) fn post<H: Handler<T, Shared>, T: 'static>(scope: Scope, path: &'static str, handler: H) -> Route {
    Route::new(MethodFilter::POST, Some(scope), path, handler)
}

pub(crate) fn put<H: Handler<T, Shared>, T: 'static>(scope: Scope, path: &'static str, handler: H) -> Route {
    Route::new(MethodFilter::PUT, Some(scope), path, handler)
}
