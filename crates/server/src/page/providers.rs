//! Providers: whether each takes jobs, and why not; and the models that they serve.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tidegate_dispatch::{ModelConfig, PickStrategy, strategy_name};

use super::action::Action;
use super::actions::{button, notice};
use super::error_page;
use super::generations::without_models;
use super::parts::{count, filled};
use super::view::{View, items, number, text, time_in};
use super::words::Words;
use crate::api::local::LocalApi;
use crate::edge::query::Query;
use crate::error::ErrorCode;
use crate::generations::providers::Availability;

pub(crate) async fn show(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::new(&headers, &api);
    let words = view.language.words();
    match api.get("/v1/providers").await {
        Ok(page) => {
            let service = api.server.generations.as_ref();
            let models = service.map(|service| service.dispatch.models()).unwrap_or_default();
            let content = html! {
                (notice(&api, &view, &mut query))
                h1 { (words.providers) }
                section #providers data-live { (table(&view, items(&page, "providers"))) }
                (models_table(&models, items(&page, "providers"), words))
            };
            view.live_page(words.providers, &content)
        }
        Err(error) if error.code == ErrorCode::UnknownModel => without_models(words.providers, view.language),
        Err(error) => error_page(&error),
    }
}

fn table(view: &View, providers: &[Value]) -> Markup {
    let words = view.language.words();
    html! {
        @if providers.is_empty() { p.quiet { (words.no_providers) } } @else {
            table.cards.rows.tall {
                caption.hidden { (words.providers) }
                thead {
                    tr {
                        th.c-id scope="col" { (words.provider) }
                        th.c-left scope="col" { (words.status) }
                        th.number scope="col" { (words.slots) }
                        th.number scope="col" { (words.per_minute) }
                        th.number scope="col" { (words.waiting) }
                        th.number scope="col" { (words.errors_in_a_row) }
                        th scope="col" { (words.last_error) }
                        th.c-state scope="col" { span.hidden { (view.words.actions) } }
                    }
                }
                tbody { @for provider in providers { (row(view, provider)) } }
            }
        }
    }
}

/// Who serves each model, and who of them takes no job now.
fn models_table(models: &[ModelConfig], providers: &[Value], words: &Words) -> Markup {
    let state = |name: &str| {
        let provider = providers.iter().find(|one| text(one, "name") == name)?;
        Availability::parse(text(provider, "state")).filter(|state| *state != Availability::Free)
    };
    let link = |name: &str| match state(name) {
        Some(state) => format!("{name} ({})", words.availability(state)),
        None => name.to_owned(),
    };
    let chain = |model: &ModelConfig| {
        let links: Vec<String> = model.chain.iter().map(|one| link(&one.provider)).collect();
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

fn row(view: &View, provider: &Value) -> Markup {
    let words = view.language.words();
    let (name, until) = (text(provider, "name"), time_in(provider, "until"));
    let error = &provider["last_error"];
    html! {
        tr {
            th scope="row" { (name) }
            td.wrap { (state(view, provider)) @if let Some(until) = until { ", " (view.tried_again(until)) } }
            td.number data-label=(words.slots) { (slots(&provider["slots"], words)) }
            td.number data-label=(words.per_minute) { (rate(&provider["rpm"], words)) }
            td.number data-label=(words.waiting) { (count(number(provider, "waiting"))) }
            td.number data-label=(words.errors_in_a_row) { (number(&provider["breaker"], "failures")) }
            td.why data-label=[error.as_object().map(|_| words.last_error)] {
                @if let Some(message) = error["message"].as_str() {
                    span title=(message) {
                        @if let Some(at) = time_in(error, "at") { (view.ago(at)) " " (words.ago) ": " }
                        (message)
                    }
                }
            }
            td.act {
                @if text(provider, "state") == Availability::CoolingDown.as_str() { (button(view, Action::OpenProvider, name)) }
            }
        }
    }
}

/// Whether it takes jobs, and since when not.
pub(super) fn state(view: &View, provider: &Value) -> Markup {
    let word = text(provider, "state");
    let known = Availability::parse(word);
    let (glyph, class) = match known {
        Some(Availability::Free) => ("✓", "succeeded"),
        Some(Availability::Busy) => ("▶", "running"),
        _ => ("◔", "waiting"),
    };
    let shown = known.map_or(word, |state| view.language.words().availability(state));
    html! {
        span class={ "state " (class) } { span aria-hidden="true" { (glyph) } " " (shown) }
        @if let Some(since) = time_in(provider, "failing_since") { " " (view.words.failing) " " (view.lasting(since)) }
    }
}

/// Jobs in progress, of how many. It says so: the same figures mean the opposite of a limit.
fn slots(slots: &Value, words: &Words) -> String {
    let in_use = number(slots, "in_use").to_string();
    match slots["max_concurrent"].as_u64() {
        Some(most) => filled(words.taken_of, [&in_use, &most.to_string()]),
        None => in_use,
    }
}

/// Submits left, of how many.
fn rate(rpm: &Value, words: &Words) -> String {
    match rpm["limit"].as_u64() {
        Some(most) => filled(words.left_of, [&count(number(rpm, "left")), &count(most)]),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;
    use tidegate_dispatch::ChainLinkConfig;

    use super::super::words::Language;
    use super::*;

    /// "0 of 2" is idle among jobs and exhausted among limits, so each says what it counts.
    #[test]
    fn figures_say_whether_they_are_taken_or_left() {
        let (jobs, submits) = (json!({ "in_use": 0, "max_concurrent": 2 }), json!({ "left": 0, "limit": 2 }));
        for (language, taken, left) in [
            (Language::English, "0 of 2 taken", "0 of 2 left"),
            (Language::Russian, "занято 0 из 2", "осталось 0 из 2"),
        ] {
            let words = language.words();
            assert_eq!([slots(&jobs, words), rate(&submits, words)], [taken, left]);
            assert_eq!(words.left_of, language.operator_words().left_of);
        }
        let words = Language::English.words();
        let without = json!({ "in_use": 3, "max_concurrent": null, "limit": null });
        assert_eq!([slots(&without, words), rate(&without, words)], ["3", ""], "there is no limit");
    }

    /// OPS-24: a provider that fails says since when and why, and has a button while it cools.
    #[test]
    fn ops_24_a_provider_that_fails_says_since_when_and_why() {
        let view = View::at(Language::English, Time::from_millis(90_000));
        let provider = |state: &str| {
            json!({
                "name": "fal", "state": state, "waiting": 3, "breaker": { "failures": 2 },
                "failing_since": "1970-01-01T00:00:30Z", "until": null,
                "last_error": { "message": "HTTP 503", "at": "1970-01-01T00:01:20Z" },
            })
        };
        let html = table(&view, &[provider("cooling_down")]).into_string();
        for part in
            ["failing for <time", "1 min</time>", "HTTP 503", "10 s</time> ago", "/actions/open-provider"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        let html = table(&view, &[provider("probing")]).into_string();
        assert!(html.contains("tried with one job") && !html.contains("/actions/"), "{html}");
    }

    /// OPS-24: a model says who of its chain takes no job now.
    #[test]
    fn ops_24_a_model_says_which_of_its_providers_cools() {
        let links = ["fal", "local"].map(|provider| ChainLinkConfig::new(provider, "flux"));
        let models = [ModelConfig::new("flux", links.to_vec())];
        let providers =
            [json!({ "name": "fal", "state": "cooling_down" }), json!({ "name": "local", "state": "free" })];
        let words = Language::English.words();
        let html = models_table(&models, &providers, words).into_string();
        assert!(html.contains(&format!(">fal ({}) → local<", words.cooling_down)), "{html}");
    }
}
