//! The front of a node that shares its store with others. Every node answers every call: the front finds the partition
//! that a call is about, serves it from the room it has here or passes it on to the node that owns it, once. What a call
//! means is decided behind it, in the partition's own router; the front reads no more than it needs to find the way.

mod batch;
mod courier;
mod cursor;
mod drainer;
mod everywhere;
mod hello;
mod hop;
mod operations;
mod own;
mod passing;
mod reach;
mod relay;
mod rooms;
mod submit;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error};
use tidegate_cluster::Cluster;
use tidegate_upstream::http::stream::StreamedBody;

pub(crate) use courier::Courier;
pub(crate) use drainer::hear;
pub(crate) use hello::{Greeter, Hello};
pub(crate) use own::show as show_view;
pub(crate) use reach::upstream_place;
pub(crate) use rooms::{Landlord, Plan, Rooms};

use crate::api;
use crate::api::route::{self, Access};
use crate::app::House;
use crate::config::Scope;
use crate::edge::auth::Caller;
use crate::edge::content::{self, Arriving};
use crate::edge::front_door::{Callers, FrontDoor, Guarded};
use crate::edge::request_id::RequestId;
use crate::pacing::body::streamed;
use crate::pacing::request::BODY_MAX;
use crate::wire::failure::Failure;
use passing::Passing;
use reach::Reach;

/// How long a call is held while this node joins.
const JOIN: Duration = Duration::from_secs(12);

/// What the front works with.
pub(crate) struct Front {
    pub cluster: Cluster,
    pub rooms: Arc<Rooms>,
    pub courier: Courier,
    pub house: Arc<House>,
    /// What it says to other nodes of itself.
    pub hello: Arc<Hello>,
    /// Upstreams whose operations are spread by group; all others have one place each.
    pub spread: BTreeSet<String>,
}

/// A call on its way: what is left of it once its caller was admitted and its body read.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub method: axum::http::Method,
    /// Path and query.
    pub target: String,
    pub content_type: Option<axum::http::HeaderValue>,
    pub body: Bytes,
    pub caller: Arc<str>,
    pub request_id: Arc<str>,
    /// Of a call that is passed on to an upstream, the client's own headers.
    pub passing: Option<Arc<Passing>>,
    /// A body that is too large to be kept, until it is on its way.
    pub streamed: Option<Arc<StreamedOnce>>,
}

/// A body that can be sent once.
#[derive(Debug)]
pub(crate) struct StreamedOnce(Mutex<Option<StreamedBody>>);

impl Call {
    /// Its body, on its way now.
    fn take_body(&self) -> Body {
        match &self.streamed {
            Some(streamed) => {
                let mut streamed = streamed.0.lock().unwrap_or_else(PoisonError::into_inner);
                streamed.take().map_or_else(Body::empty, Body::new)
            }
            None => Body::from(self.body.clone()),
        }
    }

    /// Whether its body went with an earlier attempt, so that there is no other.
    fn is_spent(&self) -> bool {
        self.streamed
            .as_ref()
            .is_some_and(|streamed| streamed.0.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// The same call to another target.
    fn to(&self, target: String) -> Self {
        Self { target, ..self.clone() }
    }
}

/// Everything that is served.
pub(crate) fn router(front: &Arc<Front>) -> Guarded {
    let relayed = api::routes().into_iter().filter_map(|route| {
        let way = reach::of(route.method, route.path)?;
        let handler = move |State(front): State<Arc<Front>>, request: Request| pass(front, way, request);
        Some(route.handled(handler))
    });
    let own = [
        route::get(Scope::Read, "/v1/events", own::events),
        route::get(Scope::Read, "/metrics", own::metrics).without_query(),
        route::get(Scope::Read, "/v1/cluster", own::cluster).without_query(),
        route::page(Scope::Read, "/", own::page),
        route::get(Access::Open, "/readyz", own::ready).without_query(),
        route::get(Access::Nodes, hello::PATH, hello::answer),
        route::any(Access::Nodes, "/internal/{partition}/{*rest}", hop::take),
    ];
    let callers = Callers::Configured(Arc::clone(&front.house));
    let door = FrontDoor::new(callers, Some(Arc::clone(front.courier.secret())));
    api::serve_common(door.serve(relayed.chain(own), front), &front.house).close()
}

async fn pass(front: Arc<Front>, way: Reach, request: Request) -> Response {
    if way.places()
        && let Err(failure) = takes_part(&front).await
    {
        return failure.into_response();
    }
    let headers = if way == Reach::Submission { request.headers().clone() } else { HeaderMap::new() };
    match read(&front, way, request).await {
        Ok(call) => match way {
            Reach::Operation => relay::by_id(&front, call).await,
            Reach::Submission => submit::pass(&front, call, &headers).await,
            Reach::Batch => batch::pass(&front, call).await,
            Reach::Deployment => relay::by_guild(&front, call).await,
            Reach::Operations => operations::list(&front, call).await,
            Reach::Groups => everywhere::groups(&front, call).await,
            Reach::Group => everywhere::group(&front, call).await,
            Reach::Pause => everywhere::pause(&front, call).await,
            Reach::Limits => everywhere::limits(&front, call).await,
            Reach::Limit => relay::by_limit(&front, call).await,
            Reach::Passing => passing::pass(&front, call).await,
        },
        Err(failure) => failure.into_response(),
    }
}

/// Refuses while this node has no part: where it would place something is not where the others look for it.
async fn takes_part(front: &Front) -> Result<(), Failure> {
    if front.cluster.has_joined() {
        return Ok(());
    }
    let view = front.cluster.settled(JOIN).await;
    if view.joined {
        return Ok(());
    }
    let why = view.trouble.unwrap_or_else(|| "it has not joined the others yet".to_owned());
    let message = format!("This node takes no part: {why}. Nothing was accepted; ask another node.");
    Err(Failure(Error::new(Code::StoreUnavailable, message)))
}

async fn read(front: &Front, way: Reach, request: Request) -> Result<Call, Failure> {
    let most = match way {
        Reach::Submission | Reach::Deployment => content::ONE_MAX,
        Reach::Batch => content::BATCH_MAX,
        Reach::Passing => BODY_MAX,
        _ => content::SMALL_MAX,
    };
    let (parts, body) = request.into_parts();
    let (body, streamed) = match way {
        Reach::Passing => arriving(&front.house, body).await?,
        _ => (content::read(body, most, front.house.read_timeout).await?, None),
    };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let caller =
        parts.extensions.get::<Caller>().map_or_else(|| "local".into(), |caller| Arc::clone(&caller.0));
    let request_id = parts.extensions.get::<RequestId>().map_or_else(|| "".into(), |id| Arc::clone(&id.0));
    let content_type = content_type(&parts.headers);
    let passing = (way == Reach::Passing).then(|| Passing::of(&front.house, parts.headers));
    Ok(Call { method: parts.method, target, content_type, body, caller, request_id, passing, streamed })
}

/// The body of a call that is passed on to an upstream, or the beginning of one that is too large to be kept.
async fn arriving(house: &House, body: Body) -> Result<(Bytes, Option<Arc<StreamedOnce>>), Failure> {
    let arriving = content::begin(body, BODY_MAX, house.read_timeout).await?;
    Ok(match arriving {
        Arriving::Whole(body) => (body, None),
        Arriving::Longer { first, rest, len } => {
            let body = streamed(first, Some(rest), len, house.read_timeout);
            (Bytes::new(), Some(Arc::new(StreamedOnce(Mutex::new(Some(body))))))
        }
    })
}

fn content_type(headers: &HeaderMap) -> Option<axum::http::HeaderValue> {
    headers.get(axum::http::header::CONTENT_TYPE).cloned()
}
