//! The front door: every request passes it before a handler sees it. What it asks for stands in the record of the route,
//! and a route comes before a listener in no other way: a record without its checks cannot be served.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use tidegate::{Code, Error, Result};
use tidegate_idempotency::HEADER;

use super::auth::{self, Caller, Peer};
use super::node_secret::NodeSecret;
use super::query::Query;
use super::{once, origin, request_id};
use crate::api::route::{Access, Route, Visitors};
use crate::api::{no_method, no_route};
use crate::app::House;
use crate::config::Scope;
use crate::listen::Reserved;
use crate::pacing::links;
use crate::page;
use crate::wire::failure::Failure;

/// Who comes to a door, and how they are told apart.
#[derive(Clone)]
pub(crate) enum Callers {
    /// By their tokens, or with none configured only this machine.
    Configured(Arc<House>),
    /// Only this machine: nobody says who they are.
    ThisMachine,
    /// Everybody who reaches it: nobody says who they are.
    Everybody,
}

/// What a door goes by.
struct Rules {
    callers: Callers,
    /// What other nodes say to be let in; without it none is.
    node_secret: Option<Arc<NodeSecret>>,
}

impl Rules {
    /// Whether only this machine may call.
    fn is_local(&self) -> bool {
        match &self.callers {
            Callers::Configured(house) => house.tokens.is_empty(),
            Callers::ThisMachine => true,
            Callers::Everybody => false,
        }
    }
}

/// A router that is behind its front door: the only kind that a listener takes.
#[derive(Clone)]
pub(crate) struct Guarded(Router);

impl Guarded {
    /// All paths of a service behind, which has its own rules about who may call: Tidegate adds no right to a call of its
    /// clients.
    pub(crate) fn service_behind(router: Router) -> Self {
        Self(router)
    }

    pub(crate) fn into_router(self) -> Router {
        self.0
    }
}

/// A front door, while it is built.
pub(crate) struct FrontDoor {
    rules: Arc<Rules>,
    router: Router,
}

impl FrontDoor {
    pub(crate) fn new(callers: Callers, node_secret: Option<Arc<NodeSecret>>) -> Self {
        Self { rules: Arc::new(Rules { callers, node_secret }), router: Router::new() }
    }

    /// Puts routes behind it, each with the checks that its record asks for. Whatever is posted there may have an
    /// idempotency key, which is looked at when its sender was let in.
    pub(crate) fn serve<S: Clone + Send + Sync + 'static>(
        self,
        routes: impl IntoIterator<Item = Route<S>>,
        state: &S,
    ) -> Self {
        let Self { rules, router } = self;
        let router = routes.into_iter().fold(router, |router, route| {
            let takes_keys = route.method == MethodFilter::POST && matches!(route.access, Access::Scoped(_));
            let check = Check {
                rules: Arc::clone(&rules),
                access: route.access,
                visitors: route.visitors,
                keyed_max: takes_keys.then(|| once::body_max(route.path)),
                takes_query: route.takes_query,
            };
            let served = Router::new().route(route.path, route.call);
            router.merge(served.route_layer(from_fn_with_state(check, pass)).with_state(state.clone()))
        });
        Self { rules, router }
    }

    /// Nothing more comes behind it. What is not there is told only to those who may ask.
    pub(crate) fn close(self) -> Guarded {
        let Self { rules, router } = self;
        let house = match &rules.callers {
            Callers::Configured(house) => Some(Arc::clone(house)),
            Callers::ThisMachine | Callers::Everybody => None,
        };
        let check = Check {
            rules,
            access: Access::Open,
            visitors: Visitors::Linked,
            keyed_max: None,
            takes_query: true,
        };
        let layer = from_fn_with_state(check, pass);
        let router = router
            .fallback(no_route.layer(layer.clone()))
            .method_not_allowed_fallback(no_method.layer(layer));
        let router = match house {
            Some(house) => router
                .layer(from_fn_with_state(Arc::clone(&house), links::layer))
                .layer(from_fn_with_state(house, request_id::layer)),
            None => router,
        };
        Guarded(router.layer(from_fn(page::headers)))
    }
}

/// What one route asks for.
#[derive(Clone)]
struct Check {
    rules: Arc<Rules>,
    access: Access,
    visitors: Visitors,
    /// Largest body of a request with an idempotency key, where one may be sent.
    keyed_max: Option<usize>,
    /// Whether the handler reads the query.
    takes_query: bool,
}

async fn pass(State(check): State<Check>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    match check.admit(&head).await {
        Ok(caller) => drop(head.extensions.insert(caller)),
        Err(error) => return Failure(error).into_response(),
    }
    if !check.takes_query
        && let Err(error) = Query::parse(head.uri.query().unwrap_or_default()).finish()
    {
        return Failure(error).into_response();
    }
    let request = Request::from_parts(head, body);
    match (&check.rules.callers, check.keyed_max) {
        (Callers::Configured(house), Some(most)) if request.headers().contains_key(HEADER) => {
            once::run(house, most, request, next).await
        }
        _ => next.run(request).await,
    }
}

impl Check {
    async fn admit(&self, head: &Parts) -> Result<Caller> {
        let secret = self.rules.node_secret.as_deref().filter(|_| self.access == Access::Nodes);
        // A node calls by whatever name is advertised, and proves itself by more than a name.
        if self.rules.is_local() && !secret.is_some_and(NodeSecret::is_configured) {
            origin::must_name_this_machine(head)?;
        }
        origin::must_not_be_foreign(head, self.visitors)?;
        let is_reserved = head.extensions.get::<Reserved>().is_some();
        if is_reserved && self.access == Access::Scoped(Scope::Write) {
            let message = "All connections are at work. Nothing was accepted.";
            return Err(Error::new(Code::StoreUnavailable, message));
        }
        let peer = head.extensions.get::<Peer>().copied();
        match (self.access, &self.rules.callers) {
            (Access::Open, _) => Ok(Caller::named("anybody")),
            (Access::Nodes, _) => match secret {
                Some(secret) if is_node(secret, peer, &head.headers).await => Ok(Caller::named("node")),
                _ => Err(Error::new(Code::Forbidden, "Only nodes of this cluster call here.")),
            },
            (Access::Scoped(scope), Callers::Configured(house)) => {
                auth::admit(house, scope, peer, head.uri.path(), &head.headers)
            }
            (Access::Scoped(_), Callers::ThisMachine) => auth::admit_local(peer),
            (Access::Scoped(_), Callers::Everybody) => {
                Err(Error::new(Code::Forbidden, "This is served to this machine only."))
            }
        }
    }
}

/// A secret that is in no configuration is good on this machine only.
async fn is_node(secret: &NodeSecret, peer: Option<Peer>, headers: &HeaderMap) -> bool {
    let may_call = secret.is_configured() || peer.is_some_and(Peer::is_local);
    may_call && secret.is_known_to(headers).await
}
