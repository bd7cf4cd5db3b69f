//! Every view, and the actions of an operator, on a server of its own.

use tidegate_fixture::chromium::ChromeDriver;
use tokio::time::timeout;

use super::axe::Axe;
use super::every_action::Acting;
use super::exhibit::{Exhibit, views};
use super::pictures;
use super::session::Browser;
use crate::ALONE;
use crate::child::{RunningServer, configure};

/// Longer than all of it may take.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(150);
const TOKEN: (&str, &str) = ("OPERATOR", "the-token-of-an-operator");
/// Types a token into the form of the login and sends it.
const LOG_IN: &str = "document.querySelector('[name=token]').value = arguments[0];\
                      document.querySelector('main form button').click();";

/// The pictures that the documentation has of these views; the others are taken under load.
#[rustfmt::skip]
const PICTURED: [&str; 9] = [
    "operation", "group", "keys", "audit", "generation", "confirm", "deployment", "deployments", "nodes",
];

/// The faults of some views.
async fn faults(exhibit: &Exhibit, browser: &Browser, axe: &Axe, views: &[(&str, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, path) in views {
        let url = format!("{}{path}", exhibit.server.address);
        faults.extend(axe.faults(browser, &url).await);
        if PICTURED.contains(name) {
            pictures::keep(browser, &url, name).await;
        }
    }
    faults
}

/// The faults of the login, which a browser without a token is led to, before and after it got a
/// wrong one; then the right one lets it in.
async fn log_in(browser: &Browser, axe: &Axe) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let token = format!("[[token]]\nname = \"anna\"\nvalue_env = \"{}\"\nscopes = [\"read\"]\n", TOKEN.0);
    configure(dir.path(), 1, &token);
    let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", Some(TOKEN)));
    let mut faults = axe.faults(browser, &format!("{}/operations", server.address)).await;
    pictures::keep(browser, &format!("{}/operations", server.address), "login").await;
    browser.run(LOG_IN, &["a wrong one"]).await;
    browser.wait_until("document.querySelector('[role=alert]')", &[]).await;
    faults.extend(axe.faults_here(browser, "a login with a wrong token").await);
    browser.run(LOG_IN, &[TOKEN.1]).await;
    browser.wait_until("location.pathname === '/operations' && document.getElementById('live')", &[]).await;
    faults
}

/// No view has a serious fault, in light and dark, at 1440 and 390 px, and none is wider than a
/// phone; every action works from its confirm step; the console has no errors.
#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_no_serious_fault_in_any_view() {
    let _alone = ALONE.lock().await;
    let looked = async {
        let (driver, axe) = (ChromeDriver::start(), Axe::load());
        let (exhibit, first, second) = tokio::join!(
            Exhibit::open(),
            Browser::start(&driver, "first", "en-GB,en"),
            Browser::start(&driver, "second", "en-GB,en"),
        );
        let mut views = views(&exhibit.subjects);
        views.push(("deployment", format!("/deployments/{}", exhibit.deployment)));
        views.push(("error", "/docs/errors/TG0012".to_owned()));
        let (some, others) = views.split_at(views.len() / 2);
        let (mut found, more, at_login) = tokio::join!(
            faults(&exhibit, &first, &axe, some),
            faults(&exhibit, &second, &axe, others),
            async { log_in(&Browser::start(&driver, "login", "en-GB,en").await, &axe).await },
        );
        found.extend(more.into_iter().chain(at_login));
        assert!(found.is_empty(), "{found:#?}");
        let errors = [first.console_errors().await, second.console_errors().await].concat();
        assert!(errors.iter().all(|error| error.contains("/nowhere")), "{errors:?}");
        let addresses = [exhibit.server.address.clone()];
        Acting::new(&exhibit.caller, &first, &addresses).do_everything().await;
    };
    timeout(LIMIT, looked).await.expect("all of it is seen in time");
}
