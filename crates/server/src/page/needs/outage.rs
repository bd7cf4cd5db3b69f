//! The card of an outage: models of which no provider takes jobs, because all of them cool down
//! after errors. Generations wait then until one of them is tried again, or an operator opens it.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_dispatch::ModelConfig;

use crate::page::action::Action;
use crate::page::parts::count;
use crate::page::view::{View, number, text, time_in};

/// Models that no provider serves now, and the providers that would.
pub(super) struct Outage<'a> {
    models: Vec<&'a str>,
    providers: Vec<&'a Value>,
}

impl<'a> Outage<'a> {
    /// The outage of these models, if there is one; `providers` is what the API says about each.
    pub(super) fn of(models: &'a [ModelConfig], providers: &'a [Value]) -> Option<Self> {
        let cools = |name: &str| {
            let provider = providers.iter().find(|one| text(one, "name") == name);
            provider.is_some_and(|one| text(one, "state") == "cooling_down")
        };
        let is_down = |model: &&ModelConfig| {
            !model.chain.is_empty() && model.chain.iter().all(|link| cools(&link.provider))
        };
        let down: Vec<&ModelConfig> = models.iter().filter(is_down).collect();
        let links = down.iter().flat_map(|model| &model.chain);
        let names: BTreeSet<&str> = links.map(|link| link.provider.as_str()).collect();
        let providers = providers.iter().filter(|one| names.contains(text(one, "name"))).collect();
        let models: Vec<&str> = down.iter().map(|model| model.name.as_str()).collect();
        (!models.is_empty()).then_some(Self { models, providers })
    }

    pub(super) fn card(&self, view: &View) -> Markup {
        let words = view.words;
        let waiting = self.providers.iter().map(|one| number(one, "waiting")).max().unwrap_or(0);
        html! {
            li #need-providers {
                p.why { (view.state("waiting")) " " (words.no_provider_for) " " b { (self.models.join(", ")) } }
                @for provider in &self.providers {
                    p {
                        b { (text(provider, "name")) }
                        @if let Some(at) = time_in(provider, "until") { " · " (view.until(at, words.tried_again_in)) }
                        @if let Some(error) = provider["last_error"]["message"].as_str() { " · " (words.last_fault) ": " (error) }
                        @if let Some(at) = time_in(&provider["last_error"], "at") { " (" (view.ago(at)) " " (words.ago) ")" }
                    }
                }
                p { (words.depth) ": " b { (count(waiting)) } }
                p.buttons {
                    @for provider in self.providers.iter().filter(|one| text(&one["breaker"], "state") == "open") {
                        (button_for(view, text(provider, "name")))
                    }
                    a.button href="/providers" { (words.show) }
                }
            }
        }
    }
}

/// The button that lets calls through to a provider, with its name, as there are several.
fn button_for(view: &View, provider: &str) -> Markup {
    let subject = format!("provider:{provider}/health");
    html! { a.button href=(Action::OpenLimit.href(&subject)) { (view.words.action(Action::OpenLimit).label) " " (provider) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;
    use tidegate_dispatch::ChainLinkConfig;

    use super::*;
    use crate::page::words::Language;

    fn model(name: &str, chain: &[&str]) -> ModelConfig {
        let link = |provider: &&str| ChainLinkConfig::new(*provider, name);
        ModelConfig::new(name, chain.iter().map(link).collect())
    }

    /// OPS-24: models that no provider serves are an outage, with why, until when and the remedy.
    #[test]
    fn ops_24_an_outage_of_all_providers_is_a_card() {
        let models = [model("flux", &["fal", "local"]), model("sdxl", &["fal", "other"])];
        let provider = |name: &str, state: &str| {
            json!({
                "name": name, "state": state, "until": "1970-01-01T00:01:30Z", "waiting": 28,
                "breaker": { "state": "open" },
                "last_error": { "message": "HTTP 503", "at": "1970-01-01T00:00:30Z" },
            })
        };
        let down =
            [provider("fal", "cooling_down"), provider("local", "cooling_down"), provider("other", "free")];
        let view = View::at(Language::English, Time::from_millis(60_000));
        let html = Outage::of(&models, &down).unwrap().card(&view).into_string();
        for part in [
            "No provider takes jobs for <b>flux</b>",
            "tried again in 30 s",
            "Last fault: HTTP 503",
            "<b>28</b>",
            "/actions/open-limit?subject=provider%3Afal%2Fhealth",
            "Open local",
            "/providers",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("other"), "it serves no model that is down: {html}");
        let busy = [provider("fal", "cooling_down"), provider("local", "busy")];
        assert!(Outage::of(&models, &busy).is_none(), "a busy provider takes jobs later");
        assert!(Outage::of(&models, &[]).is_none() && Outage::of(&[], &down).is_none());
    }
}
