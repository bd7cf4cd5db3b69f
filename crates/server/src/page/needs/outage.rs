//! The cards of failing providers: one for models of which no provider takes jobs, because all of
//! them fail, and one for each other provider that has failed for a while. A card stays until the
//! provider takes jobs again, also while one job finds out whether it does.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;
use tidegate_dispatch::ModelConfig;

use crate::generations::providers::Availability;
use crate::page::action::Action;
use crate::page::parts::{count, id_link};
use crate::page::view::{View, escape, number, text, time_in};

/// A shorter outage ends alone, before anyone could do something about it.
const SHOWN_AFTER: Duration = Duration::from_secs(10);
/// While other providers take its jobs, one that fails for a shorter time needs no one.
const PROVIDER_SHOWN_AFTER: Duration = Duration::from_secs(60);

/// Models that no provider serves now, and the providers that would.
pub(super) struct Outage<'a> {
    models: Vec<&'a str>,
    providers: Vec<&'a Value>,
    /// Since when none of the providers of one of the models takes jobs.
    since: Option<Time>,
}

impl<'a> Outage<'a> {
    /// The outage of these models, if there is one; `providers` is what the API says about each.
    pub(super) fn of(models: &'a [ModelConfig], providers: &'a [Value], now: Time) -> Option<Self> {
        let find = |name: &str| providers.iter().find(|one| text(one, "name") == name);
        let down_since = |model: &ModelConfig| {
            let since = |name: &str| time_in(find(name)?, "failing_since");
            let since = model.chain.iter().map(|link| since(&link.provider)).collect::<Option<Vec<_>>>();
            since?.into_iter().max()
        };
        let down: Vec<(&ModelConfig, Time)> = models
            .iter()
            .filter_map(|model| Some((model, down_since(model)?)))
            .filter(|(_, since)| now.since(*since) >= SHOWN_AFTER)
            .collect();
        let links = down.iter().flat_map(|(model, _)| &model.chain);
        let names: BTreeSet<&str> = links.map(|link| link.provider.as_str()).collect();
        let providers: Vec<&Value> =
            providers.iter().filter(|one| names.contains(text(one, "name"))).collect();
        let matters = providers.iter().any(|one| needs_attention(one));
        let since = down.iter().map(|(_, since)| *since).min();
        let models: Vec<&str> = down.iter().map(|(model, _)| model.name.as_str()).collect();
        (!models.is_empty() && matters).then_some(Self { models, providers, since })
    }

    /// Whether its card is about a provider.
    fn covers(&self, provider: &str) -> bool {
        self.providers.iter().any(|one| text(one, "name") == provider)
    }

    pub(super) fn card(&self, view: &View) -> Markup {
        let words = view.words;
        let waiting = self.providers.iter().map(|one| number(one, "waiting")).max().unwrap_or(0);
        html! {
            li #need-providers {
                p.why {
                    (view.state("waiting")) " " (words.no_provider_for) " " b { (self.models.join(", ")) }
                    @if let Some(since) = self.since { " " (view.lasting(since)) }
                }
                p { (words.generations_waiting) ": " b { (count(waiting)) } }
                @for provider in &self.providers { (line(view, provider)) }
                p.buttons {
                    @for provider in &self.providers { @if is_cooling(provider) { (button_for(view, text(provider, "name"))) } }
                    a.button href="/providers" { (words.show) }
                }
            }
        }
    }
}

/// The providers that have failed for a while, except those of an outage.
pub(super) fn failing_providers<'a>(
    providers: &'a [Value],
    outage: Option<&Outage<'_>>,
    now: Time,
) -> Vec<&'a Value> {
    let is_known = |one: &Value| outage.is_some_and(|outage| outage.covers(text(one, "name")));
    let has_failed_long = |one: &Value| {
        let since = time_in(one, "failing_since");
        since.is_some_and(|since| now.since(since) >= PROVIDER_SHOWN_AFTER)
    };
    let matters = |one: &&Value| has_failed_long(one) && !is_known(one) && needs_attention(one);
    providers.iter().filter(matters).collect()
}

/// The card of a provider that fails while others take its jobs.
pub(super) fn provider_card(view: &View, provider: &Value) -> Markup {
    let (words, name) = (view.words, text(provider, "name"));
    html! {
        li id={ "need-provider-" (escape(name)) } {
            p.why { (view.state("waiting")) " " (words.provider_fails) }
            (line(view, provider))
            p { (words.generations_waiting) ": " b { (count(number(provider, "waiting"))) } }
            p.buttons {
                @if is_cooling(provider) { (button_for(view, name)) }
                a.button href="/providers" { (words.show) }
            }
        }
    }
}

/// Whether anything waits for a provider, or it is not even tried: when neither, the next job may
/// succeed.
fn needs_attention(provider: &Value) -> bool {
    number(provider, "waiting") > 0 || is_cooling(provider)
}

fn is_cooling(provider: &Value) -> bool {
    text(provider, "state") == Availability::CoolingDown.as_str()
}

/// What is known of a provider: since when it fails, why, and when it is tried again.
fn line(view: &View, provider: &Value) -> Markup {
    let (words, error) = (view.words, &provider["last_error"]);
    html! {
        p {
            b { (text(provider, "name")) }
            @if let Some(since) = time_in(provider, "failing_since") { " " (words.failing) " " (view.lasting(since)) }
            @match time_in(provider, "until").filter(|until| *until > view.now) {
                Some(until) => { " · " (view.tried_again(until)) },
                None => { " · " (view.language.words().probing) },
            }
            @if let Some(message) = error["message"].as_str() {
                " · " (words.last_fault) ": " (message)
                @if let Some(at) = time_in(error, "at") { " (" (view.ago(at)) " " (words.ago) ") " }
                (id_link("/generations/", text(error, "generation")))
            }
        }
    }
}

/// The button that sends a job to a provider, with its name, as there are several.
fn button_for(view: &View, provider: &str) -> Markup {
    let label = view.words.action(Action::OpenProvider).label;
    html! { a.button href=(Action::OpenProvider.href(provider)) { (label) ": " (provider) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_dispatch::ChainLinkConfig;

    use super::*;
    use crate::page::words::Language;

    fn model(name: &str, chain: &[&str]) -> ModelConfig {
        let link = |provider: &&str| ChainLinkConfig::new(*provider, name);
        ModelConfig::new(name, chain.iter().map(link).collect())
    }

    fn failing(name: &str, state: &str, since_s: u32) -> Value {
        json!({
            "name": name, "state": state, "until": "1970-01-01T00:01:30Z", "waiting": 28,
            "failing_since": format!("1970-01-01T00:00:{since_s:02}Z"),
            "last_error": { "message": "HTTP 503", "at": "1970-01-01T00:00:50Z", "generation": "op_7" },
        })
    }

    fn well(name: &str, state: &str) -> Value {
        json!({ "name": name, "state": state, "waiting": 28, "failing_since": null })
    }

    /// OPS-24: models that no provider serves are an outage, with why, since when, until when and
    /// the remedy; it stays while one job at a time finds out whether it is over.
    #[test]
    fn ops_24_an_outage_of_all_providers_is_a_card() {
        let models = [model("flux", &["fal", "local"]), model("sdxl", &["fal", "other"])];
        let down =
            [failing("fal", "cooling_down", 20), failing("local", "probing", 30), well("other", "free")];
        let view = View::at(Language::English, Time::from_millis(60_000));
        let html = Outage::of(&models, &down, view.now).unwrap().card(&view).into_string();
        for part in [
            "No provider takes jobs for <b>flux</b> for <time",
            ">30 s</time>",
            "<b>fal</b> failing for <time",
            ">40 s</time>",
            "tried again in 30 s",
            "Last fault: HTTP 503",
            "op_7",
            "<b>28</b>",
            "/actions/open-provider?subject=fal",
            "Try again now: fal",
            "/providers",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("other"), "it serves no model that is down: {html}");
        assert!(!html.contains("now: local"), "it is tried already: {html}");
        let probing = [failing("fal", "probing", 20), failing("local", "probing", 30)];
        let view = View::at(Language::English, Time::from_millis(100_000));
        let html = Outage::of(&models[..1], &probing, view.now).unwrap().card(&view).into_string();
        assert!(html.matches("tried with one job").count() == 2, "{html}");
    }

    /// OPS-24: a provider that fails for a while has a card although others take its jobs, unless
    /// the card of an outage names it.
    #[test]
    fn ops_24_a_provider_that_fails_for_a_while_is_a_card() {
        let models = [model("flux", &["fal", "local"])];
        let providers = [failing("fal", "cooling_down", 20), well("local", "busy")];
        let names = |providers: &[Value], seconds: u64| {
            let now = Time::from_millis(seconds * 1_000);
            let outage = Outage::of(&models, providers, now);
            let failing = failing_providers(providers, outage.as_ref(), now);
            failing.iter().map(|one| text(one, "name").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&providers, 79), [""; 0], "it may end alone");
        assert_eq!(names(&providers, 80), ["fal"]);
        let both = [failing("fal", "cooling_down", 20), failing("local", "probing", 30)];
        assert_eq!(names(&both, 95), [""; 0], "it is an outage");
        let mut idle = [failing("fal", "probing", 20), well("local", "busy")];
        idle[0]["waiting"] = 0.into();
        assert_eq!(names(&idle, 80), [""; 0], "the next job may succeed");
        let view = View::at(Language::English, Time::from_millis(80_000));
        let html = provider_card(&view, &providers[0]).into_string();
        for part in [
            "need-provider-fal",
            "go to the next one that is free",
            "<b>fal</b> failing for",
            "tried again in 10 s",
            "Try again now: fal",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    /// OPS-24: a provider that takes jobs, now or later, is no outage; neither are failures after
    /// which nothing waits.
    #[test]
    fn ops_24_a_provider_that_takes_jobs_ends_an_outage() {
        let models = [model("flux", &["fal", "local"])];
        let cooling = || failing("fal", "cooling_down", 20);
        let now = Time::from_millis(60_000);
        let is_outage = |models: &[ModelConfig], providers: &[Value], now: Time| {
            Outage::of(models, providers, now).is_some()
        };
        assert!(!is_outage(&models, &[cooling(), well("local", "busy")], now), "it takes jobs later");
        assert!(!is_outage(&models, &[cooling()], now), "nothing is known of the other");
        assert!(!is_outage(&models, &[], now) && !is_outage(&[], &[cooling()], now));
        let mut idle = [failing("fal", "probing", 20), failing("local", "probing", 30)];
        assert!(is_outage(&models, &idle, now));
        assert!(is_outage(&models, &idle, Time::from_millis(40_000)));
        assert!(!is_outage(&models, &idle, Time::from_millis(39_999)), "it may end alone");
        idle.iter_mut().for_each(|one| one["waiting"] = 0.into());
        assert!(!is_outage(&models, &idle, now), "the next job may succeed");
    }
}
