//! What calls do to the shops: a plain state machine. The same calls at the same times from the same seed do the same.

use std::collections::BTreeMap;

use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::ShopifySimOptions;
use super::address::Address;
use super::bodies::{self, Bill};
use super::bulk::Stage;
use super::call::Call;
use super::cost::{SINGLE_MAX, Share, cost};
use super::document::Document;
use super::leaky::Fill;
use super::page::Page;
use super::plan::{Change, Figures};
use super::points::Use;
use super::resource::tell;
use super::rows::Rows;
use super::run::{Outcome, Run};
use super::shop::{Shop, ShopStats};
use super::version::Version;
use crate::chance::Chance;
use crate::seen::Seen;
use crate::stats::Stats;

/// Most shops.
pub const SHOPS_MAX: usize = 10_000;

/// What it counted, in all and by shop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopifyStats {
    /// Of all shops, as every simulator tells it.
    #[serde(flatten)]
    pub all: Stats,
    /// Of each shop.
    pub shops: BTreeMap<String, ShopStats>,
}

/// What becomes of a call. Its effect has happened; what is told is told later.
#[derive(Debug)]
pub enum Fate {
    /// It had its effect and nobody hears of it.
    Cut,
    /// This, as it is.
    Plain(StatusCode, Value),
    /// A REST answer, with how full the bucket is.
    Rest(StatusCode, Value, Fill),
    /// It did not fit.
    Throttled {
        /// What it asked for.
        requested: u64,
    },
    /// It ran.
    Ran {
        /// What it asked for.
        requested: u64,
        /// What it used.
        actual: u64,
        /// What came of it.
        outcome: Outcome,
    },
}

/// All shops.
#[derive(Debug)]
pub struct World {
    shops: BTreeMap<String, Shop>,
    stats: Stats,
    seen: Seen,
    chance: Chance,
    /// The number of the last thing that was made.
    last: u64,
    bills: u64,
    figures: Figures,
    options: ShopifySimOptions,
}

impl World {
    /// One without shops.
    #[must_use]
    pub fn new(options: &ShopifySimOptions) -> Self {
        Self {
            shops: BTreeMap::new(),
            stats: Stats::default(),
            seen: Seen::default(),
            chance: Chance::new(options.seed),
            last: 1_000_000,
            bills: 0,
            figures: options.plan.figures(),
            options: options.clone(),
        }
    }

    /// A call comes in, and has its effect if it has one. `base` is where results of bulk operations are.
    pub fn arrive(
        &mut self,
        address: &Address,
        version: Version,
        call: &Call,
        base: &str,
        now: Time,
    ) -> Fate {
        self.stats.calls += 1;
        if !self.shops.contains_key(&address.shop) && self.shops.len() >= SHOPS_MAX {
            let full = format!("there are {SHOPS_MAX} shops already");
            return Fate::Plain(StatusCode::SERVICE_UNAVAILABLE, json!({ "errors": full }));
        }
        let figures = self.figures;
        let shop = self.shops.entry(address.shop.clone()).or_insert_with(|| Shop::new(figures, now));
        shop.counts.calls += 1;
        match call {
            Call::Wrong(status, body) => Fate::Plain(*status, body.clone()),
            Call::Rest { method, resource, body, page } => {
                self.rest(&address.shop, (method, resource, body, *page), now)
            }
            Call::Graphql { document, requested } => {
                self.graphql(address, version, (document, *requested), base, now)
            }
        }
    }

    fn graphql(
        &mut self,
        address: &Address,
        version: Version,
        (document, requested): (&Document, u64),
        base: &str,
        now: Time,
    ) -> Fate {
        let Some(shop) = self.shops.get_mut(&address.shop) else { return not_found() };
        if requested > SINGLE_MAX {
            self.stats.overstepped += 1;
            shop.counts.overstepped += 1;
            return Fate::Plain(StatusCode::OK, bodies::too_costly(requested));
        }
        // All are drawn each time, so that one does not shift what another one hits.
        let share = Share::drawn(self.chance.next());
        let fails = self.chance.happens(self.options.fail_rate).then(|| failure(&mut self.chance));
        let cuts = self.chance.happens(self.options.cut_rate);
        let actual = if fails.is_some() { 0 } else { cost(document, share) };
        let until = now.after(self.options.latency);
        if !shop.points.take(Use { requested, actual, until }, now) {
            self.stats.throttled += 1;
            self.stats.overstepped += 1;
            shop.throttled();
            return Fate::Throttled { requested };
        }
        if let Some(failed) = fails {
            return failed;
        }
        self.stats.billed += actual;
        let run = Run {
            name: &address.shop,
            shop,
            stats: &mut self.stats,
            seen: &mut self.seen,
            last: &mut self.last,
            version,
            share,
            base,
            bulk_takes: self.options.bulk_takes,
            bulk_rows: self.options.bulk_rows,
            now,
        };
        let outcome = run.document(document);
        if cuts { Fate::Cut } else { Fate::Ran { requested, actual, outcome } }
    }

    fn rest(
        &mut self,
        name: &str,
        (method, resource, body, page): (&Method, &str, &Value, Option<Page>),
        now: Time,
    ) -> Fate {
        let Some(shop) = self.shops.get_mut(name) else { return not_found() };
        shop.counts.rest_calls += 1;
        if !shop.rest.drop_in(now) {
            self.stats.throttled += 1;
            self.stats.overstepped += 1;
            shop.throttled();
            let body = bodies::rest_limited(shop.figures.rest_per_s);
            return Fate::Rest(StatusCode::TOO_MANY_REQUESTS, body, shop.rest.fill(now));
        }
        let fails = self.chance.happens(self.options.fail_rate).then(|| failure(&mut self.chance));
        let cuts = self.chance.happens(self.options.cut_rate);
        if let Some(failed) = fails {
            return failed;
        }
        self.last += 1;
        let told = tell(method, resource, body, page, self.last);
        self.stats.writes += u64::from(told.is_write);
        if let Some(key) = told.key {
            self.stats.duplicates += u64::from(self.seen.again(&format!("{name}/{resource}"), &key));
        }
        if cuts { Fate::Cut } else { Fate::Rest(told.status, told.body, shop.rest.fill(now)) }
    }

    /// What is told of a call when its time has come.
    pub fn tell(&mut self, shop: &str, fate: Fate, now: Time) -> Option<(StatusCode, Value)> {
        let mut bill = |requested, actual| {
            self.bills += 1;
            let status = self.shops.get_mut(shop)?.points.status(now);
            Some(Bill { requested, actual, status, decimals: self.bills % 2 == 1 })
        };
        match fate {
            Fate::Cut => None,
            Fate::Plain(status, body) | Fate::Rest(status, body, _) => Some((status, body)),
            Fate::Throttled { requested } => {
                Some((StatusCode::OK, bodies::throttled(&bill(requested, None)?)))
            }
            Fate::Ran { requested, actual, outcome } => {
                let bill = bill(requested, Some(actual))?;
                Some((StatusCode::OK, bodies::answered(&outcome.data, outcome.errors, &bill)))
            }
        }
    }

    /// Changes the limits of a shop, which is made if it is not there; `None` when a figure is absurd.
    pub fn change(&mut self, name: &str, change: Change, now: Time) -> Option<Figures> {
        let shop = self.shops.entry(name.to_owned()).or_insert_with(|| Shop::new(self.figures, now));
        let figures = change.on(shop.figures)?;
        shop.reshape(figures, now);
        Some(figures)
    }

    /// The result of a bulk operation that is done.
    #[must_use]
    pub fn rows(&self, shop: &str, number: &str, now: Time) -> Option<Rows> {
        let bulk = self.shops.get(shop)?.bulks.get(&format!("gid://shopify/BulkOperation/{number}"))?;
        let done = bulk.stage(now) == Stage::Completed;
        done.then(|| Rows::new(bulk.kind, &bulk.text, self.options.bulk_rows).ok()).flatten()
    }

    /// The counts.
    pub fn stats(&mut self, now: Time) -> ShopifyStats {
        let shops = self.shops.iter_mut().map(|(name, shop)| (name.clone(), shop.stats(now)));
        ShopifyStats { shops: shops.collect(), all: self.stats.clone() }
    }

    /// How many calls came.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.stats.calls
    }
}

fn not_found() -> Fate {
    Fate::Plain(StatusCode::NOT_FOUND, json!({ "errors": "Not Found" }))
}

/// A failure without effect, of one kind or another.
fn failure(chance: &mut Chance) -> Fate {
    let (status, words) = match chance.next() % 3 {
        0 => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        1 => (StatusCode::BAD_GATEWAY, "Bad Gateway"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
    };
    Fate::Plain(status, json!({ "errors": words }))
}
