//! The guard that every request passes before a handler sees it. Its checks are declared in the
//! record of the route, and there is no other way to serve a route: one without checks cannot reach
//! a listener.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};
use percent_encoding::percent_decode_str;
use tidegate_idempotency::HEADER;

use super::auth::{self, Caller, CallerTenant, PeerAddr};
use super::completion_token;
use super::node_secret::NodeSecret;
use super::query::Query;
use super::revocation::end_with_token;
use super::{idempotency, login, origin, request_id};
use crate::api::route::{Access, AllowedOrigin, QueryPolicy, RouteSpec};
use crate::api::{no_method, no_route};
use crate::config::TokenScope;
use crate::error::{Error, ErrorCode, Result};
use crate::listen::{PlainConnection, ReservedConnection};
use crate::pacing::links;
use crate::page;
use crate::state::ServerState;
use crate::wire::error::ApiError;

/// Which callers are admitted, and how they are identified.
#[derive(Clone)]
pub(crate) enum CallerPolicy {
    /// By their tokens, or only this machine if none is configured.
    Configured(Arc<ServerState>),
    /// Only this machine; callers are not identified.
    ThisMachine,
    /// Everyone who can connect; callers are not identified.
    Everybody,
}

/// The rules of a guard.
struct AccessRules {
    callers: CallerPolicy,
    /// The secret of the nodes; without it no node is admitted.
    node_secret: Option<Arc<NodeSecret>>,
}

impl AccessRules {
    /// Whether only this machine may call.
    fn is_local(&self) -> bool {
        match &self.callers {
            CallerPolicy::Configured(server) => !server.tokens.are_required(),
            CallerPolicy::ThisMachine => true,
            CallerPolicy::Everybody => false,
        }
    }
}

/// A router behind its guard: the only kind that a listener serves.
#[derive(Clone)]
pub(crate) struct GuardedRouter(Router);

impl GuardedRouter {
    /// Wraps all paths of a service behind the proxy, which has its own authorization: Tidegate
    /// adds no right to its clients' calls.
    pub(crate) fn without_checks(router: Router) -> Self {
        Self(router)
    }

    pub(crate) fn into_router(self) -> Router {
        self.0
    }
}

/// Builds a guarded router.
pub(crate) struct GuardedRouterBuilder {
    rules: Arc<AccessRules>,
    router: Router,
}

impl GuardedRouterBuilder {
    pub(crate) fn new(callers: CallerPolicy, node_secret: Option<Arc<NodeSecret>>) -> Self {
        Self { rules: Arc::new(AccessRules { callers, node_secret }), router: Router::new() }
    }

    /// Adds a route with the checks that its record declares. A POST may have an idempotency key,
    /// which is handled after its caller was admitted.
    pub(crate) fn add_route(self, spec: RouteSpec, call: MethodRouter) -> Self {
        let Self { rules, router } = self;
        let takes_keys = spec.method == MethodFilter::POST && matches!(spec.access, Access::Scoped(_));
        let check = RouteCheck {
            rules: Arc::clone(&rules),
            access: spec.access,
            allowed_origin: spec.allowed_origin,
            keyed_max: takes_keys.then(|| spec.body.len_max()),
            query: spec.query,
        };
        let served = Router::new().route(spec.path, call);
        let router = router.merge(served.route_layer(from_fn_with_state(check, check_request)));
        Self { rules, router }
    }

    /// Finishes the router. Only admitted callers learn that a path does not exist.
    pub(crate) fn build(self) -> GuardedRouter {
        let Self { rules, router } = self;
        let server = match &rules.callers {
            CallerPolicy::Configured(server) => Some(Arc::clone(server)),
            CallerPolicy::ThisMachine | CallerPolicy::Everybody => None,
        };
        let check = RouteCheck {
            rules,
            access: Access::Open,
            allowed_origin: AllowedOrigin::Linked,
            keyed_max: None,
            query: QueryPolicy::AnyQuery,
        };
        let layer = from_fn_with_state(check, check_request);
        let router = router
            .fallback(no_route.layer(layer.clone()))
            .method_not_allowed_fallback(no_method.layer(layer));
        let router = match server {
            Some(server) => router
                .layer(from_fn_with_state(Arc::clone(&server), links::layer))
                .layer(from_fn_with_state(server, request_id::layer)),
            None => router,
        };
        GuardedRouter(router.layer(from_fn(page::headers)))
    }
}

/// The checks of one route.
#[derive(Clone)]
struct RouteCheck {
    rules: Arc<AccessRules>,
    access: Access,
    allowed_origin: AllowedOrigin,
    /// The largest body of a request with an idempotency key, if the route accepts keys.
    keyed_max: Option<usize>,
    query: QueryPolicy,
}

async fn check_request(State(check): State<RouteCheck>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let caller = match check.admit(&head).await {
        Ok((caller, tenant)) => {
            head.extensions.insert(caller.clone());
            if let Some(tenant) = tenant {
                head.extensions.insert(tenant);
            }
            caller
        }
        Err(error) => return check.refuse(&head, error),
    };
    if check.query == QueryPolicy::NoQuery
        && let Err(error) = Query::parse(head.uri.query().unwrap_or_default()).finish()
    {
        return ApiError(error).into_response();
    }
    if let Err(error) = check.check_path(&head) {
        let is_page = check.allowed_origin == AllowedOrigin::Linked;
        return match is_page && page::is_wanted(&head.method, &head.headers) {
            true => page::error_page(&error),
            false => ApiError(error).into_response(),
        };
    }
    let request = Request::from_parts(head, body);
    match (&check.rules.callers, check.keyed_max) {
        (CallerPolicy::Configured(server), Some(most)) if request.headers().contains_key(HEADER) => {
            idempotency::run(server, most, request, next).await
        }
        (CallerPolicy::Configured(server), _) if matches!(check.access, Access::Scoped(_)) => {
            end_with_token(server, &caller, next.run(request).await)
        }
        _ => next.run(request).await,
    }
}

impl RouteCheck {
    /// Refuses a path that is not text. What is below a proxy is the upstream's, and what a node
    /// forwards was checked by that node.
    fn check_path(&self, head: &Parts) -> Result<()> {
        let is_passed_on = self.access == Access::Nodes || self.allowed_origin == AllowedOrigin::Client;
        if is_passed_on || percent_decode_str(head.uri.path()).decode_utf8().is_ok() {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Malformed, "The path is not UTF-8 once it is decoded.").field("path"))
    }

    /// The response to a caller that is not admitted: a browser that opens a page may log in, also
    /// with another token.
    fn refuse(&self, head: &Parts, error: Error) -> Response {
        let form = match self.allowed_origin {
            AllowedOrigin::Linked => login::lead_to_form(head, &error),
            AllowedOrigin::Own | AllowedOrigin::Client => None,
        };
        form.unwrap_or_else(|| ApiError(error).into_response())
    }

    /// Admits a caller, and says which tenant its token belongs to.
    async fn admit(&self, head: &Parts) -> Result<(Caller, Option<CallerTenant>)> {
        if self.access != Access::Nodes && head.extensions.get::<PlainConnection>().is_some() {
            return Err(Error::new(ErrorCode::Forbidden, "This server is called with TLS: https://…"));
        }
        let secret = self.rules.node_secret.as_deref().filter(|_| self.access == Access::Nodes);
        // A node calls by whatever name is advertised, and is authenticated by its secret; a
        // service calls back at the public URL, and is authenticated by its completion token.
        let is_callback = self.access == Access::Webhook
            || matches!(self.access, Access::Completion(_)) && completion_token::find(head).is_some();
        if self.rules.is_local() && !secret.is_some_and(NodeSecret::is_configured) && !is_callback {
            origin::require_local_host(head)?;
        }
        origin::reject_cross_site(head, self.allowed_origin)?;
        let is_reserved = head.extensions.get::<ReservedConnection>().is_some();
        if is_reserved && self.access == Access::Scoped(TokenScope::Write) {
            let message = "All connections are in use. Nothing was accepted.";
            return Err(Error::new(ErrorCode::StoreUnavailable, message));
        }
        let peer = head.extensions.get::<PeerAddr>().copied();
        let caller = match (self.access, &self.rules.callers) {
            (Access::Open, _) => Caller::named("anybody"),
            (Access::Webhook, _) => Caller::named("webhook"),
            (Access::Nodes, _) => match secret {
                Some(secret) if is_node(secret, peer, &head.headers).await => Caller::named("node"),
                _ => {
                    return Err(Error::new(
                        ErrorCode::Forbidden,
                        "Only nodes of this cluster may call this.",
                    ));
                }
            },
            (Access::Completion(_), CallerPolicy::Configured(server)) if is_callback => {
                completion_token::admit(server, head)?
            }
            (Access::Scoped(scope) | Access::Completion(scope), CallerPolicy::Configured(server)) => {
                return auth::admit(server, scope, peer, head.uri.path(), &head.headers);
            }
            (Access::Scoped(_) | Access::Completion(_), CallerPolicy::ThisMachine) => {
                auth::admit_local(peer)?
            }
            (Access::Scoped(_) | Access::Completion(_), CallerPolicy::Everybody) => {
                return Err(Error::new(ErrorCode::Forbidden, "This is served to this machine only."));
            }
        };
        Ok((caller, None))
    }
}

/// Whether the caller is a node. A secret that is not configured is valid on this machine only.
async fn is_node(secret: &NodeSecret, peer: Option<PeerAddr>, headers: &HeaderMap) -> bool {
    let may_call = secret.is_configured() || peer.is_some_and(PeerAddr::is_local);
    may_call && secret.is_presented_in(headers).await
}
