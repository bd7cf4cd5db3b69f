//! Providers: whether each takes jobs, and why not; and the models that they serve.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::Time;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_dispatch::{ModelConfig, PickStrategy, UNLIMITED, strategy_name};

use super::generations::without_models;
use super::parts::{count, filled, time_ago, time_until};
use super::words::{Language, Words};
use super::{Frame, error_page, framed};
use crate::api::generations::providers::statuses;
use crate::error::ErrorCode;
use crate::generations::providers::{Availability, ProviderStatus};
use crate::state::SharedPartition;

pub(crate) async fn show(State(app): State<SharedPartition>, headers: HeaderMap) -> Response {
    let language = Language::preferred(&headers);
    let words = language.words();
    match statuses(&app).await {
        Ok(statuses) => {
            let service = app.server.generations.as_ref();
            let models = service.map(|service| service.dispatch.models()).unwrap_or_default();
            let content = html! {
                (content(&statuses, app.server.clock.now(), words))
                (models_table(&models, words))
            };
            framed(&Frame { title: words.providers, language, regions: Some("") }, &content).into_response()
        }
        Err(error) if error.code == ErrorCode::UnknownModel => without_models(words.providers, language),
        Err(error) => error_page(&error),
    }
}

fn content(statuses: &[ProviderStatus], now: Time, words: &Words) -> Markup {
    html! {
        h1 { (words.providers) }
        section #providers data-live {
            @if statuses.is_empty() { p.quiet { (words.no_providers) } } @else {
                table.cards.rows {
                    caption.hidden { (words.providers) }
                    thead {
                        tr {
                            th.c-id scope="col" { (words.provider) }
                            th.c-state scope="col" { (words.status) }
                            th.c-time scope="col" { (words.until) }
                            th.number scope="col" { (words.slots) }
                            th.number scope="col" { (words.per_minute) }
                            th.number scope="col" { (words.waiting) }
                            th.number scope="col" { (words.errors_in_a_row) }
                            th scope="col" { (words.last_error) }
                        }
                    }
                    tbody { @for status in statuses { (row(status, now, words)) } }
                }
            }
        }
    }
}

/// Who serves each model now.
fn models_table(models: &[ModelConfig], words: &Words) -> Markup {
    let chain = |model: &ModelConfig| {
        let links: Vec<&str> = model.chain.iter().map(|link| link.provider.as_str()).collect();
        links.join(" → ")
    };
    html! {
        section #models data-live {
            h2 { (words.models) }
            table.cards.rows {
                caption.hidden { (words.models) }
                thead {
                    tr {
                        th.c-id scope="col" { (words.model) }
                        th scope="col" { (words.chain) }
                    }
                }
                tbody {
                    @for model in models {
                        tr {
                            th scope="row" { (model.name) }
                            td.why data-label=(words.chain) {
                                (chain(model))
                                @if model.strategy != PickStrategy::Chain {
                                    " (" (strategy_name(model.strategy)) ")"
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(status: &ProviderStatus, now: Time, words: &Words) -> Markup {
    let (state, until) = status.state(now);
    let (glyph, class) = match state {
        Availability::Free => ("✓", "succeeded"),
        Availability::Busy => ("▶", "running"),
        Availability::RateLimited | Availability::CoolingDown => ("◔", "waiting"),
    };
    html! {
        tr {
            th scope="row" { (status.name) }
            td { span class={ "state " (class) } { span aria-hidden="true" { (glyph) } " " (words.availability(state)) } }
            td data-label=[until.map(|_| words.until)] { @if let Some(until) = until { (time_until(until, now, words)) } }
            td.number data-label=(words.slots) { (slots(&status.slots, words)) }
            td.number data-label=(words.per_minute) { (rate(&status.rpm, words)) }
            td.number data-label=(words.waiting) { (count(status.waiting() as u64)) }
            td.number data-label=(words.errors_in_a_row) { (status.breaker.failures) }
            td.why data-label=[status.last_error.as_ref().map(|_| words.last_error)] {
                @if let Some(error) = &status.last_error { span title=(error.message) { (error.message) " (" (time_ago(error.at, now, words)) ")" } }
            }
        }
    }
}

/// Jobs in progress, of how many. It says so: the same figures mean the opposite of a limit.
fn slots(limit: &LimitView, words: &Words) -> String {
    match limit.shape {
        LimitShape::Cap { at_once } if at_once < UNLIMITED => {
            filled(words.taken_of, [&limit.in_flight.to_string(), &at_once.to_string()])
        }
        _ => limit.in_flight.to_string(),
    }
}

/// Submits left, of how many.
fn rate(limit: &LimitView, words: &Words) -> String {
    match limit.shape {
        LimitShape::Window { limit: most, .. } | LimitShape::Drip { capacity: most, .. }
            if most / MICRO < u64::from(UNLIMITED) =>
        {
            filled(words.left_of, [&count(limit.level / MICRO), &count(most / MICRO)])
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::fact::LimitSource;

    use super::*;

    fn limit(shape: LimitShape) -> LimitView {
        LimitView {
            name: "acme".into(),
            shape,
            source: LimitSource::Config,
            opened: false,
            level: 0,
            in_flight: 0,
            waiting: 0,
            parked: 0,
            users: 0,
            frozen_until: None,
            reset_at: None,
            failures: 0,
        }
    }

    /// "0 of 2" is idle among jobs and exhausted among limits, so each says what it counts.
    #[test]
    fn figures_say_whether_they_are_taken_or_left() {
        let jobs = limit(LimitShape::Cap { at_once: 2 });
        let submits = limit(LimitShape::Window { limit: 2 * MICRO, period: Duration::from_secs(60) });
        for (language, taken, left) in [
            (Language::English, "0 of 2 taken", "0 of 2 left"),
            (Language::Russian, "занято 0 из 2", "осталось 0 из 2"),
        ] {
            let words = language.words();
            assert_eq!([slots(&jobs, words), rate(&submits, words)], [taken, left]);
            assert_eq!(words.left_of, language.operator_words().left_of);
        }
    }
}
