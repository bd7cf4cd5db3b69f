//! Providers: whether each takes jobs, and changing its limits at run time.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate::ErrorKind;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_dispatch::ProviderLimits;

use super::super::HandlerResult;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode, Result};
use crate::generations::providers::{ProviderStatus, read_all};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::field::Field;
use crate::wire::object::{Fields, read, truncate_name};
use crate::wire::provider::{ProviderOut, ProvidersOut};

const NAMES: [&str; 3] = ["max_concurrent", "rpm", "open"];
/// The highest limit that can be set.
const FIGURE_MAX: u64 = 1_000_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Reads the state of every provider.
pub(crate) async fn statuses(app: &PartitionState) -> Result<Vec<ProviderStatus>> {
    let generations = app.generations()?;
    match &app.server.generations {
        Some(service) => read_all(&service.dispatch, &app.engine, generations).await,
        None => Ok(Vec::new()),
    }
}

pub(crate) async fn list(State(app): State<SharedPartition>) -> HandlerResult {
    let statuses = statuses(&app).await?;
    let now = app.server.clock.now();
    let providers = statuses.iter().map(|status| ProviderOut::new(status, now)).collect();
    Ok(Json(ProvidersOut { providers }).into_response())
}

pub(crate) async fn change(
    State(app): State<SharedPartition>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let limits = find_limits(&app, &name)?;
    let body = body.read().await?;
    let Fields { values: [slots, rpm, open], mut problems } = read(&body, &NAMES)?;
    let slots = problems.check(Field { name: NAMES[0], raw: slots }.integer(1..=FIGURE_MAX));
    let rpm = problems.check(Field { name: NAMES[1], raw: rpm }.integer(1..=FIGURE_MAX));
    let open = problems.check(Field { name: NAMES[2], raw: open }.flag()).unwrap_or(false);
    if slots.is_none() && rpm.is_none() && !open && problems.is_empty() {
        let message = "Nothing is to be changed: give max_concurrent, rpm, or open: true.";
        problems.add(Error::new(ErrorCode::Malformed, message).field(NAMES[0]));
    }
    problems.finish()?;
    if open {
        open_closed(&app, &name).await?;
    }
    if let Some(most) = slots {
        let at_once = u32::try_from(most).unwrap_or(u32::MAX);
        app.engine.set_limit(&limits.slots, LimitShape::Cap { at_once }).await?;
    }
    if let Some(most) = rpm {
        let shape = LimitShape::Window { limit: most * MICRO, period: MINUTE };
        app.engine.set_limit(&limits.rpm, shape).await?;
    }
    tracing::info!(provider = name, by = &*caller, ?slots, ?rpm, open, "limits of a provider changed");
    let status = find_status(&app, &name).await?;
    Ok(Json(ProviderOut::new(&status, app.server.clock.now())).into_response())
}

/// Lets jobs through to a provider again: opens its breaker and those of its keys and accounts, as
/// far as they are closed.
async fn open_closed(app: &PartitionState, name: &str) -> Result<()> {
    let status = find_status(app, name).await?;
    let mut opened = 0;
    for breaker in status.breakers() {
        match app.engine.thaw_closed(&breaker.name).await {
            Ok(_) => opened += 1,
            Err(error) if error.kind == ErrorKind::NotNow => {}
            Err(error) => return Err(error.into()),
        }
    }
    if opened == 0 {
        let message = format!("The provider {:?} is not closed.", truncate_name(name));
        return Err(Error::new(ErrorCode::NotNow, message).field(NAMES[2]));
    }
    Ok(())
}

async fn find_status(app: &PartitionState, name: &str) -> Result<ProviderStatus> {
    let found = statuses(app).await?.into_iter().find(|status| status.name == name);
    found.ok_or_else(|| no_provider(name))
}

fn find_limits(app: &PartitionState, name: &str) -> Result<ProviderLimits> {
    app.generations()?;
    let service = app.server.generations.as_ref();
    service.and_then(|service| service.dispatch.provider_limits(name)).ok_or_else(|| no_provider(name))
}

fn no_provider(name: &str) -> Error {
    Error::new(ErrorCode::NoProvider, format!("There is no provider {:?}.", truncate_name(name)))
}
