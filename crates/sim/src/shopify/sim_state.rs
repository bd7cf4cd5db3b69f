//! Applies calls to the shops: a plain state machine. The same calls at the same times from the
//! same seed have the same results.

use std::collections::BTreeMap;

use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::ShopifySimOptions;
use super::address::ApiAddress;
use super::bodies::{self, CostExtension};
use super::bulk::BulkStage;
use super::call::ShopifyCall;
use super::cost::{ReturnedShare, SINGLE_MAX, cost};
use super::document::Document;
use super::leaky_bucket::BucketFill;
use super::page::RestPage;
use super::plan::{ShopLimits, ShopLimitsChange};
use super::points::PointUse;
use super::resource::respond;
use super::rows::BulkRows;
use super::run::{DocumentOutcome, DocumentRun};
use super::shop::{Shop, ShopStats};
use super::version::Version;
use crate::effect_history::EffectHistory;
use crate::rng::SeededRng;
use crate::stats::Stats;

/// Most shops.
pub const SHOPS_MAX: usize = 10_000;

/// The counts, in all and by shop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopifyStats {
    /// Counts of all shops, as every simulator reports them.
    #[serde(flatten)]
    pub all: Stats,
    /// Responses that were compressed, because the client asked for it.
    #[serde(default)]
    pub compressed: u64,
    /// Counts by shop.
    pub shops: BTreeMap<String, ShopStats>,
}

/// The outcome of a call. Its effect has happened; the response follows later.
#[derive(Debug)]
pub enum ShopifySimOutcome {
    /// It had its effect, but the connection is cut.
    Cut,
    /// A plain response.
    Plain(StatusCode, Value),
    /// A REST response, with the fill level of the bucket.
    Rest(StatusCode, Value, BucketFill),
    /// It was throttled.
    Throttled {
        /// The requested cost.
        requested: u64,
    },
    /// It ran.
    Done {
        /// The requested cost.
        requested: u64,
        /// The actual cost.
        actual: u64,
        /// The outcome of the document.
        outcome: DocumentOutcome,
    },
}

/// All shops.
#[derive(Debug)]
pub struct ShopifySimState {
    shops: BTreeMap<String, Shop>,
    stats: Stats,
    compressed: u64,
    history: EffectHistory,
    rng: SeededRng,
    /// The last number that was assigned.
    last: u64,
    bills: u64,
    limits: ShopLimits,
    options: ShopifySimOptions,
}

impl ShopifySimState {
    /// Creates a state without shops.
    #[must_use]
    pub fn new(options: &ShopifySimOptions) -> Self {
        Self {
            shops: BTreeMap::new(),
            stats: Stats::default(),
            compressed: 0,
            history: EffectHistory::default(),
            rng: SeededRng::new(options.seed),
            last: 1_000_000,
            bills: 0,
            limits: options.plan.limits(),
            options: options.clone(),
        }
    }

    /// Handles a call and applies its effect, if it has one. `base` is the base URL for results of
    /// bulk operations.
    pub fn handle(
        &mut self,
        address: &ApiAddress,
        version: Version,
        call: &ShopifyCall,
        base: &str,
        now: Time,
    ) -> ShopifySimOutcome {
        self.stats.calls += 1;
        if !self.shops.contains_key(&address.shop) && self.shops.len() >= SHOPS_MAX {
            let full = format!("there are {SHOPS_MAX} shops already");
            return ShopifySimOutcome::Plain(StatusCode::SERVICE_UNAVAILABLE, json!({ "errors": full }));
        }
        let figures = self.limits;
        let shop = self.shops.entry(address.shop.clone()).or_insert_with(|| Shop::new(figures, now));
        shop.counts.calls += 1;
        match call {
            ShopifyCall::Invalid(status, body) => ShopifySimOutcome::Plain(*status, body.clone()),
            ShopifyCall::Rest { method, resource, body, page } => {
                self.rest(&address.shop, (method, resource, body, *page), now)
            }
            ShopifyCall::Graphql { document, requested } => {
                self.graphql(address, version, (document, *requested), base, now)
            }
        }
    }

    fn graphql(
        &mut self,
        address: &ApiAddress,
        version: Version,
        (document, requested): (&Document, u64),
        base: &str,
        now: Time,
    ) -> ShopifySimOutcome {
        let Some(shop) = self.shops.get_mut(&address.shop) else { return not_found() };
        if requested > SINGLE_MAX {
            self.stats.overstepped += 1;
            shop.counts.overstepped += 1;
            return ShopifySimOutcome::Plain(StatusCode::OK, bodies::too_costly(requested));
        }
        // All are drawn each time, so that one does not shift what another one hits.
        let share = ReturnedShare::drawn(self.rng.next());
        let fails = self.rng.happens(self.options.fail_rate).then(|| failure(&mut self.rng));
        let cuts = self.rng.happens(self.options.cut_rate);
        let actual = if fails.is_some() { 0 } else { cost(document, share) };
        let until = now.after(self.options.latency);
        if !shop.points.take(PointUse { requested, actual, until }, now) {
            self.stats.throttled += 1;
            self.stats.overstepped += 1;
            shop.count_throttled();
            return ShopifySimOutcome::Throttled { requested };
        }
        if let Some(failed) = fails {
            return failed;
        }
        self.stats.billed += actual;
        let run = DocumentRun {
            name: &address.shop,
            shop,
            stats: &mut self.stats,
            history: &mut self.history,
            last: &mut self.last,
            version,
            share,
            base,
            bulk_takes: self.options.bulk_takes,
            bulk_rows: self.options.bulk_rows,
            now,
        };
        let outcome = run.document(document);
        if cuts { ShopifySimOutcome::Cut } else { ShopifySimOutcome::Done { requested, actual, outcome } }
    }

    fn rest(
        &mut self,
        name: &str,
        (method, resource, body, page): (&Method, &str, &Value, Option<RestPage>),
        now: Time,
    ) -> ShopifySimOutcome {
        let Some(shop) = self.shops.get_mut(name) else { return not_found() };
        shop.counts.rest_calls += 1;
        if !shop.rest.add(now) {
            self.stats.throttled += 1;
            self.stats.overstepped += 1;
            shop.count_throttled();
            let body = bodies::rest_limited(shop.limits.rest_per_s);
            return ShopifySimOutcome::Rest(StatusCode::TOO_MANY_REQUESTS, body, shop.rest.fill(now));
        }
        let fails = self.rng.happens(self.options.fail_rate).then(|| failure(&mut self.rng));
        let cuts = self.rng.happens(self.options.cut_rate);
        if let Some(failed) = fails {
            return failed;
        }
        self.last += 1;
        let response = respond(method, resource, body, page, self.last);
        self.stats.writes += u64::from(response.is_write);
        if let Some(key) = response.key {
            self.stats.duplicates += u64::from(self.history.record(&format!("{name}/{resource}"), &key));
        }
        if cuts {
            ShopifySimOutcome::Cut
        } else {
            ShopifySimOutcome::Rest(response.status, response.body, shop.rest.fill(now))
        }
    }

    /// Builds the response to a call once its latency has passed.
    pub fn respond(
        &mut self,
        shop: &str,
        outcome: ShopifySimOutcome,
        now: Time,
    ) -> Option<(StatusCode, Value)> {
        let mut extension = |requested, actual| {
            self.bills += 1;
            let status = self.shops.get_mut(shop)?.points.status(now);
            Some(CostExtension { requested, actual, status, decimals: self.bills % 2 == 1 })
        };
        match outcome {
            ShopifySimOutcome::Cut => None,
            ShopifySimOutcome::Plain(status, body) | ShopifySimOutcome::Rest(status, body, _) => {
                Some((status, body))
            }
            ShopifySimOutcome::Throttled { requested } => {
                Some((StatusCode::OK, bodies::throttled(&extension(requested, None)?)))
            }
            ShopifySimOutcome::Done { requested, actual, outcome } => {
                let extension = extension(requested, Some(actual))?;
                Some((StatusCode::OK, bodies::data_body(&outcome.data, outcome.errors, &extension)))
            }
        }
    }

    /// Changes the limits of a shop, which is created if it does not exist; `None` when a figure is
    /// out of range.
    pub fn change_limits(&mut self, name: &str, change: ShopLimitsChange, now: Time) -> Option<ShopLimits> {
        let shop = self.shops.entry(name.to_owned()).or_insert_with(|| Shop::new(self.limits, now));
        let figures = change.apply_to(shop.limits)?;
        shop.reshape(figures, now);
        Some(figures)
    }

    /// Returns the result of a bulk operation that has completed.
    #[must_use]
    pub fn rows(&self, shop: &str, number: &str, now: Time) -> Option<BulkRows> {
        let bulk = self.shops.get(shop)?.bulks.get(&format!("gid://shopify/BulkOperation/{number}"))?;
        let done = bulk.stage(now) == BulkStage::Completed;
        done.then(|| BulkRows::new(bulk.kind, &bulk.text, self.options.bulk_rows).ok()).flatten()
    }

    /// Returns the counts.
    pub fn stats(&mut self, now: Time) -> ShopifyStats {
        let shops = self.shops.iter_mut().map(|(name, shop)| (name.clone(), shop.stats(now)));
        ShopifyStats { shops: shops.collect(), all: self.stats.clone(), compressed: self.compressed }
    }

    /// Counts a response that was compressed.
    pub const fn count_compressed(&mut self) {
        self.compressed += 1;
    }

    /// Returns how many calls arrived.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.stats.calls
    }
}

fn not_found() -> ShopifySimOutcome {
    ShopifySimOutcome::Plain(StatusCode::NOT_FOUND, json!({ "errors": "Not Found" }))
}

/// Returns a failure without effect, of one kind or another.
fn failure(chance: &mut SeededRng) -> ShopifySimOutcome {
    let (status, words) = match chance.next() % 3 {
        0 => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        1 => (StatusCode::BAD_GATEWAY, "Bad Gateway"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
    };
    ShopifySimOutcome::Plain(status, json!({ "errors": words }))
}
