//! Every view of one node of three, and actions of an operator at nodes that do not own what they
//! are about.

use std::time::Duration;

use hyper::Method;
use tidegate_fixture::chromium::ChromeDriver;
use tidegate_sim::{DiscordSim, ProviderSim};
use tokio::time::timeout;

use super::nodes::{Nodes, Setup};
use super::store::Store;
use crate::ALONE;
use crate::browser::axe::Axe;
use crate::browser::every_action::{self, Acting};
use crate::browser::exhibit::{
    FAILED, PAUSED, Subjects, Upstreams, WaitingCaller, state_of, views, wait_for,
};
use crate::browser::operator::FOLLOW;
use crate::browser::session::Browser;
use crate::browser::studio::{self, PROVIDER_KEY};
use crate::caller::Caller;
use crate::deployed;

const NODES: usize = 3;
/// Longer than all of it may take.
const LIMIT: Duration = Duration::from_secs(150);

/// An action by a click on a page: the page, its section, the button, and the operation whose owner
/// is not asked.
struct Click<'a> {
    page: &'a str,
    section: &'a str,
    button: &'a str,
    about: &'a str,
}

/// Clicks and confirms, at a node that does not own what it is about.
async fn act(nodes: &Nodes, browser: &Browser, click: &Click<'_>) {
    let owner = nodes.owner_of(click.about, 0).await;
    let other = (owner + 1) % NODES;
    browser.open(&format!("{}{}", nodes.address(other), click.page)).await;
    browser.run(FOLLOW, &[click.section, click.button]).await;
    browser.confirm("at another node", click.button).await;
}

/// Cancels, resumes, pauses, resolves and reruns.
async fn act_at_others(nodes: &Nodes, browser: &Browser, subjects: &Subjects) {
    let operation = |id: &str| format!("/operations/{id}");
    let [canceled, resolved, rerun] =
        [&subjects.queued, &subjects.unknown[0], &subjects.failed].map(|id| (operation(id), id.as_str()));
    let group = format!("/groups/{PAUSED}");
    let clicks = [
        Click { page: &canceled.0, section: "operation", button: "Cancel", about: canceled.1 },
        Click { page: &group, section: "group", button: "Resume", about: canceled.1 },
        Click { page: &group, section: "group", button: "Pause", about: canceled.1 },
        Click { page: &resolved.0, section: "operation", button: "It happened", about: resolved.1 },
        Click { page: &rerun.0, section: "operation", button: "Re-run", about: rerun.1 },
    ];
    for click in &clicks {
        act(nodes, browser, click).await;
    }
    let caller = nodes.doors.at(0);
    let states = [state_of(caller, canceled.1).await, state_of(caller, resolved.1).await];
    assert_eq!(states, ["canceled", "succeeded"]);
    wait_for(caller, rerun.1, "failed").await;
    let log = caller.get("/v1/audit").await;
    assert_eq!(log.matches("at another node").count(), clicks.len(), "{log}");
    browser.open(&format!("{}/groups/{FAILED}", nodes.address(1))).await;
    browser.run(FOLLOW, &["group", "Re-run failed"]).await;
    browser.confirm("all of them", "(1)").await;
}

/// The write of a deployment at which it stops for a while.
const STOPPED_AT: u64 = 5;
const HAS_PROGRESS: &str =
    "document.querySelector('#deployment .progress')?.textContent.includes(arguments[0])";

/// A deployment that goes on is live at any node: its bar, its steps and its end. Returns its view.
async fn watch_deployment(nodes: &Nodes, browser: &Browser, discord: &DiscordSim) -> String {
    deployed::stop_at(discord, STOPPED_AT).await;
    let begun = nodes.doors.at(0).post("/v1/deployments", &[], &deployed::small()).await;
    let view = format!("/deployments/{}", begun["id"].as_str().unwrap());
    deployed::wait_until_stopped(discord).await;
    browser.open(&format!("{}{view}", nodes.address(1))).await;
    browser.wait_until(HAS_PROGRESS, &[&format!("{} of 16 steps applied", STOPPED_AT - 1)]).await;
    let control = Caller::of(&format!("http://{}", discord.addr()));
    control.call(Method::DELETE, "/_sim/stop", &[], None).await.unwrap();
    browser.wait_until(HAS_PROGRESS, &["16 of 16 steps applied"]).await;
    browser.wait_until("document.querySelector('#deployment h1 .done')", &[]).await;
    view
}

/// A cluster with something in every view.
struct ExhibitCluster {
    nodes: Nodes,
    subjects: Subjects,
    discord: DiscordSim,
    _waiting: WaitingCaller,
    _sims: (Upstreams, ProviderSim),
}

impl ExhibitCluster {
    async fn start() -> Self {
        let (upstreams, provider) = (Upstreams::start().await, studio::provider().await);
        let discord = deployed::discord().await;
        let secrets = [PROVIDER_KEY, deployed::UPSTREAM_TOKEN];
        let environment = secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let sections = [upstreams.sections(), deployed::upstream(&discord), studio::sections(&provider)];
        let setup = Setup {
            store: sections.concat() + &every_action::sections(),
            environments: vec![environment; NODES],
            ..Setup::default()
        };
        let nodes = Nodes::start_with(NODES, Store::redis(), setup).await;
        every_action::claim_keys(&nodes.store.url()).await;
        let subjects = Subjects::create(nodes.doors.at(1)).await;
        let _waiting = WaitingCaller::start(nodes.doors.at(2)).await;
        Self { nodes, subjects, discord, _waiting, _sims: (upstreams, provider) }
    }
}

/// Any node shows every view without a serious fault, in light and dark, at 1440 and 390 px.
#[tokio::test(flavor = "multi_thread")]
async fn chromium_sees_every_view_of_a_cluster() {
    let _alone = ALONE.lock().await;
    let looked = async {
        let (driver, axe) = (ChromeDriver::start(), Axe::load());
        let (cluster, first, second) = tokio::join!(
            ExhibitCluster::start(),
            Browser::start(&driver, "first", "en-GB,en"),
            Browser::start(&driver, "second", "en-GB,en"),
        );
        let nodes = &cluster.nodes;
        let mut views = views(&cluster.subjects);
        views.push(("deployment", watch_deployment(nodes, &first, &cluster.discord).await));
        let faults = async |browser: &Browser, views: &[(&str, String)]| {
            let mut faults = Vec::new();
            for (_, path) in views {
                faults.extend(axe.faults(browser, &format!("{}{path}", nodes.address(2))).await);
            }
            faults
        };
        let (some, others) = views.split_at(views.len() / 2);
        let (found, more) = tokio::join!(faults(&first, some), faults(&second, others));
        assert!(found.is_empty() && more.is_empty(), "{found:#?} {more:#?}");
        first.open(&nodes.address(2)).await;
        first.wait_until("document.querySelectorAll('#nodes tbody tr').length === 3", &[]).await;
    };
    timeout(LIMIT, looked).await.expect("all of it is seen in time");
}

/// Any node performs what an operator clicks, whichever node owns it: every action there is.
#[tokio::test(flavor = "multi_thread")]
async fn chromium_operates_a_cluster_from_any_node() {
    let _alone = ALONE.lock().await;
    let operated = async {
        let driver = ChromeDriver::start();
        let (cluster, browser) =
            tokio::join!(ExhibitCluster::start(), Browser::start(&driver, "first", "en-GB,en"));
        let nodes = &cluster.nodes;
        act_at_others(nodes, &browser, &cluster.subjects).await;
        let addresses = [0, 1, 2].map(|node| nodes.address(node));
        Acting::new(nodes.doors.at(0), &browser, &addresses).do_everything().await;
    };
    timeout(LIMIT, operated).await.expect("all of it is done in time");
}
