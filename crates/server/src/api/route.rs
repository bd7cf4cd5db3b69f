//! One row of the table of routes: where, how, and with which scope. The table is the only place that says so, and a
//! test holds the description of the API against it.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app::Shared;
use crate::config::Scope;

/// One call that is served.
pub(crate) struct Route<S = Shared> {
    pub path: &'static str,
    /// What a caller's token must allow; without one anybody may call.
    pub scope: Option<Scope>,
    pub call: MethodRouter<S>,
    pub method: MethodFilter,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new<H: Handler<T, S>, T: 'static>(
        method: MethodFilter,
        scope: Option<Scope>,
        path: &'static str,
        handler: H,
    ) -> Self {
        Self { path, scope, call: on(method, handler), method }
    }
}

pub(crate) fn get<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    scope: impl Into<Option<Scope>>,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route::new(MethodFilter::GET, scope.into(), path, handler)
}

pub(crate) fn post<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    scope: Scope,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route::new(MethodFilter::POST, Some(scope), path, handler)
}

/// Every method that can be passed on.
pub(crate) const PASSED_ON: [MethodFilter; 7] = [
    MethodFilter::GET,
    MethodFilter::HEAD,
    MethodFilter::POST,
    MethodFilter::PUT,
    MethodFilter::PATCH,
    MethodFilter::DELETE,
    MethodFilter::OPTIONS,
];

/// A call with whatever method can be passed on.
pub(crate) fn any<H: Handler<T, Shared>, T: 'static>(scope: Scope, path: &'static str, handler: H) -> Route {
    let every = PASSED_ON.into_iter().fold(MethodFilter::GET, MethodFilter::or);
    Route::new(every, Some(scope), path, handler)
}

pub(crate) fn put<H: Handler<T, Shared>, T: 'static>(scope: Scope, path: &'static str, handler: H) -> Route {
    Route::new(MethodFilter::PUT, Some(scope), path, handler)
}
