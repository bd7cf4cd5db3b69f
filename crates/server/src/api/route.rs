//! One row of the table of routes: its path, method, handler, and who may call it. The table is the
//! only definition: the guard uses it, and a test compares the description of the API with it.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::config::TokenScope;
use crate::state::SharedPartition;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone.
    Open,
    /// Callers whose token has this scope.
    Scoped(TokenScope),
    /// Callers whose token has this scope, and callers with a completion token, which the handler
    /// verifies.
    Completion(TokenScope),
    /// Nodes that share the store, by their secret.
    Nodes,
}

impl From<TokenScope> for Access {
    fn from(scope: TokenScope) -> Self {
        Self::Scoped(scope)
    }
}

/// From which sites a browser may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedOrigin {
    /// From this server's own pages.
    Own,
    /// Also by a link on another site that a user follows.
    Linked,
}

/// One route.
pub(crate) struct Route<S = SharedPartition> {
    pub path: &'static str,
    pub access: Access,
    pub allowed_origin: AllowedOrigin,
    pub call: MethodRouter<S>,
    pub method: MethodFilter,
    /// Whether its handler reads the query and refuses unknown parameters.
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

    /// Returns the same route, which refuses a query before the handler sees it.
    pub(crate) fn without_query(self) -> Self {
        Self { takes_query: false, ..self }
    }

    /// Returns the same route, also for callers with a completion token, which the handler has to
    /// verify.
    pub(crate) fn or_completion_token(self) -> Self {
        let access = match self.access {
            Access::Scoped(scope) => Access::Completion(scope),
            access => access,
        };
        Self { access, ..self }
    }

    /// Returns the same route with another handler.
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

/// An HTML page, which other sites may link to.
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

/// The methods that can be proxied.
pub(crate) const PROXIED_METHODS: [MethodFilter; 7] = [
    MethodFilter::GET,
    MethodFilter::HEAD,
    MethodFilter::POST,
    MethodFilter::PUT,
    MethodFilter::PATCH,
    MethodFilter::DELETE,
    MethodFilter::OPTIONS,
];

/// A route for all methods that can be proxied.
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
