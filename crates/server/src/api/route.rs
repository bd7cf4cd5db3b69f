//! The record of a route: everything that a router, the guard and the description of the API need
//! to know about it. A record has no defaults, so a part that is forgotten does not compile.

use std::sync::Arc;

use axum::Extension;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use tidegate_idempotency::KeyAdmin;

use super::local::LocalApi;
use crate::config::TokenScope;
use crate::edge::content::BodyBound;
use crate::routing::{RoutingRule, RoutingState};
use crate::state::{ServerState, SharedPartition};

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
    /// Providers that report the end of a job: whoever calls, the handler verifies the token in the
    /// path and the signature.
    Webhook,
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
    /// The same, and never as a page that a browser opens by itself: the call leaves with the
    /// credential of an upstream.
    Client,
    /// Also by a link on another site that a user follows.
    Linked,
}

/// What becomes of the query of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryPolicy {
    /// The handler reads it.
    AnyQuery,
    /// The guard refuses it before the handler sees the request.
    NoQuery,
}

/// Whether a request may be forwarded again when it is unknown whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idempotence {
    /// Always: the second one changes nothing.
    Always,
    /// It depends on the request, for example on its dedupe key.
    ByRequest,
    /// Never.
    Never,
}

/// What is known of a route apart from its handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteSpec {
    pub method: MethodFilter,
    pub path: &'static str,
    pub access: Access,
    pub allowed_origin: AllowedOrigin,
    pub query: QueryPolicy,
    pub body: BodyBound,
    pub idempotence: Idempotence,
    /// The name of the command in the audit log, which records it; `None` for what is no command of
    /// an operator.
    pub audited_as: Option<&'static str>,
}

/// Which part of a server serves a route, alone and in a cluster.
#[expect(clippy::large_enum_variant, reason = "a hundred records, built once at the start")]
pub(crate) enum RouteService {
    /// Any node, without any state.
    Stateless(MethodRouter),
    /// Any node, from the store or its own configuration.
    Store(MethodRouter<Arc<ServerState>>),
    /// Any node, from the idempotency keys in the store.
    Keys(MethodRouter<KeyAdmin>),
    /// The engine of a partition; in a cluster, the rule finds the partition.
    Partition(RoutingRule, MethodRouter<SharedPartition>),
    /// Each node by itself: a single node from its engine, one of a cluster for its partitions.
    EachNode { single: MethodRouter<SharedPartition>, clustered: MethodRouter<Arc<RoutingState>> },
    /// Each node of a cluster, to the other nodes.
    Peers(MethodRouter<Arc<RoutingState>>),
    /// A page of any node, made from responses of the API.
    Page(MethodRouter<LocalApi>),
}

/// A route.
pub(crate) struct Route {
    pub spec: RouteSpec,
    pub service: RouteService,
}

impl RouteSpec {
    /// Returns the same route, also for callers with a completion token, which the handler has to
    /// verify.
    pub(super) fn or_completion_token(self) -> Self {
        let access = match self.access {
            Access::Scoped(scope) => Access::Completion(scope),
            access => access,
        };
        Self { access, ..self }
    }

    /// Returns the same route as a command of an operator.
    pub(super) const fn audited_as(self, command: &'static str) -> Self {
        Self { audited_as: Some(command), ..self }
    }

    /// Attaches a handler, which gets the bound of its body from here.
    pub(crate) fn handle<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
        self,
        handler: H,
    ) -> MethodRouter<S> {
        on(self.method, handler).layer(Extension(self.body))
    }

    /// Attaches a handler and its state.
    pub(crate) fn serve<H: Handler<T, S>, T: 'static, S: Clone + Send + Sync + 'static>(
        self,
        handler: H,
        state: &S,
    ) -> (Self, MethodRouter) {
        (self, self.handle(handler).with_state(state.clone()))
    }

    pub(super) fn stateless<H: Handler<T, ()>, T: 'static>(self, handler: H) -> Route {
        Route { spec: self, service: RouteService::Stateless(self.handle(handler)) }
    }

    pub(super) fn store<H: Handler<T, Arc<ServerState>>, T: 'static>(self, handler: H) -> Route {
        Route { spec: self, service: RouteService::Store(self.handle(handler)) }
    }

    pub(super) fn keys<H: Handler<T, KeyAdmin>, T: 'static>(self, handler: H) -> Route {
        Route { spec: self, service: RouteService::Keys(self.handle(handler)) }
    }

    pub(super) fn partition<H: Handler<T, SharedPartition>, T: 'static>(
        self,
        rule: RoutingRule,
        handler: H,
    ) -> Route {
        Route { spec: self, service: RouteService::Partition(rule, self.handle(handler)) }
    }

    pub(super) fn each_node<
        H1: Handler<T1, SharedPartition>,
        H2: Handler<T2, Arc<RoutingState>>,
        T1: 'static,
        T2: 'static,
    >(
        self,
        single: H1,
        clustered: H2,
    ) -> Route {
        let (single, clustered) = (self.handle(single), self.handle(clustered));
        Route { spec: self, service: RouteService::EachNode { single, clustered } }
    }

    pub(super) fn page<H: Handler<T, LocalApi>, T: 'static>(self, handler: H) -> Route {
        Route { spec: self, service: RouteService::Page(self.handle(handler)) }
    }

    pub(super) fn peers<H: Handler<T, Arc<RoutingState>>, T: 'static>(self, handler: H) -> Route {
        Route { spec: self, service: RouteService::Peers(self.handle(handler)) }
    }
}

/// Reads something: it has no body, and can be repeated.
pub(crate) fn get(path: &'static str, access: impl Into<Access>, query: QueryPolicy) -> RouteSpec {
    RouteSpec {
        method: MethodFilter::GET,
        path,
        access: access.into(),
        allowed_origin: AllowedOrigin::Own,
        query,
        body: BodyBound::NoBody,
        idempotence: Idempotence::Always,
        audited_as: None,
    }
}

/// An HTML page, which other sites may link to.
pub(crate) fn page(path: &'static str, access: impl Into<Access>) -> RouteSpec {
    RouteSpec { allowed_origin: AllowedOrigin::Linked, ..get(path, access, QueryPolicy::AnyQuery) }
}

pub(super) fn post(
    path: &'static str,
    access: impl Into<Access>,
    query: QueryPolicy,
    body: BodyBound,
    idempotence: Idempotence,
) -> RouteSpec {
    RouteSpec { method: MethodFilter::POST, body, idempotence, ..get(path, access, query) }
}

/// Sets something to what the body says, so it can be repeated.
pub(super) fn put(path: &'static str, scope: TokenScope, query: QueryPolicy, body: BodyBound) -> RouteSpec {
    RouteSpec { method: MethodFilter::PUT, body, ..get(path, scope, query) }
}

/// Changes some fields of something to what the body says, so it can be repeated.
pub(super) fn patch(path: &'static str, scope: TokenScope, query: QueryPolicy, body: BodyBound) -> RouteSpec {
    RouteSpec { method: MethodFilter::PATCH, body, ..get(path, scope, query) }
}

pub(super) fn delete(
    path: &'static str,
    scope: TokenScope,
    query: QueryPolicy,
    idempotence: Idempotence,
) -> RouteSpec {
    RouteSpec { method: MethodFilter::DELETE, idempotence, ..get(path, scope, query) }
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
pub(super) fn proxied(
    path: &'static str,
    access: impl Into<Access>,
    body: BodyBound,
    idempotence: Idempotence,
) -> RouteSpec {
    let method = PROXIED_METHODS.into_iter().fold(MethodFilter::GET, MethodFilter::or);
    let allowed_origin = AllowedOrigin::Client;
    RouteSpec { method, allowed_origin, body, idempotence, ..get(path, access, QueryPolicy::AnyQuery) }
}
