//! The shops: their names, their restore rates, and how much work waits for each. The simulator
//! produces their responses.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::queries::COST_MAX;
use crate::client::{Client, request};
use crate::nodes::TOKEN_VAR;

/// Points restored per second, of ten shops: many are small.
const PLANS: [u64; 10] = [100, 100, 100, 100, 200, 200, 200, 1_000, 1_000, 2_000];
/// The capacity of a shop, in seconds of its restore rate.
const HELD_S: u64 = 20;
/// The initial balance: as much as the most expensive query, and less than anyone would guess
/// before the first response. More would hide mistakes, since a client that never asks for more
/// than is restored would never touch it.
const AT_FIRST: u64 = COST_MAX;
/// At least one of each plan.
pub(super) const LEAST: usize = PLANS.len();
/// The index of the busy one: the first of the largest plan.
const BUSY: usize = PLANS.len() - 1;
/// How much more work waits for it.
const BUSY_TIMES: f64 = 10.0;
const OK: u16 = 200;

/// The work of the busy shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BusyShopWork {
    /// None: the others are alone.
    NoneForTheBusy,
    /// Ten times that of the others.
    MoreForTheBusy,
}

/// A shop.
#[derive(Clone, Debug)]
pub(super) struct Shop {
    pub number: usize,
    pub name: String,
    pub restore_per_s: u64,
    pub is_busy: bool,
}

/// Creates this many shops, of the plans in turn.
pub(super) fn make_shops(count: usize) -> Vec<Shop> {
    let shop = |number: usize| Shop {
        number,
        name: format!("shop-{number}"),
        restore_per_s: PLANS[number % PLANS.len()],
        is_busy: number == BUSY,
    };
    (0..count).map(shop).collect()
}

impl Shop {
    /// Returns the points that wait for it: what is restored in the time of the backlog, so that
    /// with a fair turn for every shop everything waits equally long.
    pub(super) fn waiting(&self, backlog: Duration, work: BusyShopWork) -> f64 {
        let usual = self.restore_per_s as f64 * backlog.as_secs_f64();
        match (self.is_busy, work) {
            (true, BusyShopWork::NoneForTheBusy) => 0.0,
            (true, BusyShopWork::MoreForTheBusy) => usual * BUSY_TIMES,
            (false, _) => usual,
        }
    }

    /// Returns it as an upstream of a node.
    pub(super) fn upstream(&self, sim: SocketAddr) -> String {
        let name = &self.name;
        format!(
            "[[upstream]]\nname = {name:?}\ndialect = \"shopify\"\nbase_url = \"http://{sim}/shops/{name}\"\n\
             token_env = {TOKEN_VAR:?}\n"
        )
    }
}

/// Gives every shop of a simulator its plan, and a small initial balance. It fills from here on.
pub(super) async fn apply_plans(sim: SocketAddr, shops: &[Shop]) -> Result<(), String> {
    let mut client = Client::connect(sim).await?;
    for Shop { name, restore_per_s, .. } in shops {
        for maximum in [AT_FIRST, restore_per_s * HELD_S] {
            let plan = json!({ "restore_per_s": restore_per_s, "maximum": maximum }).to_string();
            let path = format!("/_sim/shops/{name}");
            let (status, _) = client.send(&request(sim, "POST", &path, &plan)).await?;
            if status != OK {
                return Err(format!("the simulator responded with {status} when {name} was given its plan"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_its_share_and_one_shop_is_busy() {
        let shops = make_shops(50);
        let of = |rate| shops.iter().filter(|shop| shop.restore_per_s == rate).count();
        assert_eq!([100, 200, 1_000, 2_000].map(of), [20, 15, 10, 5]);
        assert_eq!(shops.iter().filter(|shop| shop.is_busy).count(), 1);
        assert!(make_shops(LEAST).iter().any(|shop| shop.is_busy));
    }

    #[test]
    fn the_same_time_of_work_waits_for_every_shop() {
        let (shops, backlog) = (make_shops(LEAST), Duration::from_secs(3));
        let waiting = |work| [0, 4, 8, 9].map(|number: usize| shops[number].waiting(backlog, work));
        assert_eq!(waiting(BusyShopWork::NoneForTheBusy), [300.0, 600.0, 3_000.0, 0.0]);
        assert_eq!(waiting(BusyShopWork::MoreForTheBusy), [300.0, 600.0, 3_000.0, 60_000.0]);
    }
}
