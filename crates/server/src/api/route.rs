//! One row of the table of routes: where, how, and who may call it. The table is the only place that says so: the front
//! door goes by it, and a test holds the description of the API against it.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::config::TokenScope;
use crate::state::SharedPartition;

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anybody.
    Open,
    /// Whose token has this scope.
    Scoped(TokenScope),
    /// Nodes that share the store, by their secret.
    Nodes,
}

impl From<TokenScope> for Access {
    fn from(scope: TokenScope) -> Self {
        Self::Scoped(scope)
    }
}

/// From where a browser may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedOrigin {
    /// From this server's own pages.
    Own,
    /// Also by a link on another site that a person follows.
    Linked,
}

/// One call that is served.
pub(crate) struct Route<S = SharedPartition> {
    pub path: &'static str,
    pub access: Access,
    pub allowed_origin: AllowedOrigin,
    pub call: MethodRouter<S>,
    pub method: MethodFilter,
    /// Whether its handler reads the query and refuses what it does not know.
    pub takes_query: bool,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new<H: Handler<T, S>, T: 'static>(
        method: MethodFilter,
        access: Access,
        path: &'static str,
        handler: H,
    ) -> Self {
        let (visitors, call) = (AllowedOrigin::Own, on(method, handler));
        Self { path, access, allowed_origin: visitors, call, method, takes_query: true }
    }

    /// The same, and a query is refused before the handler sees it.
    pub(crate) fn without_query(self) -> Self {
        Self { takes_query: false, ..self }
    }

    /// The same call, made by another handler.
    pub(crate) fn with_handler<H: Handler<T, S2>, T: 'static, S2: Clone + Send + Sync + 'static>(
        self,
        handler: H,
    ) -> Route<S2> {
        let Self { path, access, allowed_origin: visitors, method, takes_query, .. } = self;
        Route { path, access, allowed_origin: visitors, call: on(method, handler), method, takes_query }
    }
}

pub(crate) fn get<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    access: impl Into<Access>,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route::new(MethodFilter::GET, access.into(), path, handler)
}

/// A page for people, which other sites may link to.
pub(crate) fn page<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    access: impl Into<Access>,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route { allowed_origin: AllowedOrigin::Linked, ..get(access, path, handler) }
}

pub(crate) fn post<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    scope: TokenScope,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route::new(MethodFilter::POST, scope.into(), path, handler)
}

pub(crate) fn delete<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    scope: TokenScope,
    path: &'static str,
    handler: H,
) -> Route<S> {
    Route::new(MethodFilter::DELETE, scope.into(), path, handler)
}

/// Every method that can be passed on.
pub(crate) const PROXIED_METHODS: [MethodFilter; 7] = [
    MethodFilter::GET,
    MethodFilter::HEAD,
    MethodFilter::POST,
    MethodFilter::PUT,
    MethodFilter::PATCH,
    MethodFilter::DELETE,
    MethodFilter::OPTIONS,
];

/// A call with whatever method can be passed on.
pub(crate) fn any<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
    access: impl Into<Access>,
    path: &'static str,
    handler: H,
) -> Route<S> {
    let every = PROXIED_METHODS.into_iter().fold(MethodFilter::GET, MethodFilter::or);
    Route::new(every, access.into(), path, handler)
}

pub(crate) fn put<H: Handler<T, SharedPartition>, T: 'static>(
    scope: TokenScope,
    path: &'static str,
    handler: H,
) -> Route {
    Route::new(MethodFilter::PUT, scope.into(), path, handler)
}
