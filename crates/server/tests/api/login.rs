//! The login of a browser.

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, Response, redirect};
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config, within};

const TOKEN: &str = "the-token-of-a-reader";
/// A token that acts and cannot look.
const BLIND: &str = "the-token-of-a-program";

async fn world() -> World {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let mut config = config(&sim, "[auth]\nfailures_per_minute = 5\n");
    config.tokens = vec![
        ApiToken::new("reader", TOKEN, vec![TokenScope::Read]),
        ApiToken::new("program", BLIND, vec![TokenScope::Operate]),
    ];
    let server = Server::start(config).await.unwrap();
    let client = Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    World { server, sim, client }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> String {
    response.headers().get(name).map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

fn opened(world: &World, path: &str) -> RequestBuilder {
    world.request(Method::GET, path).header("accept", "text/html,*/*")
}

async fn log_in(world: &World, token: &str, next: &str) -> Response {
    let form = format!("token={token}&next={next}");
    world.request(Method::POST, "/login").body(form).send().await.unwrap()
}

/// A browser that opens a page is led to the form, and from there to the page that it asked for.
#[tokio::test]
async fn a_browser_logs_in_and_out() {
    within(async {
        let world = world().await;
        let refused = opened(&world, "/groups/a_b-c.d~e?x=1").send().await.unwrap();
        assert_eq!(
            (refused.status().as_u16(), header(&refused, LOCATION)),
            (303, "/login?next=%2Fgroups%2Fa_b-c.d~e%3Fx%3D1".into())
        );
        world.get("/").await.refused(401, "TG0015", None);
        let call = opened(&world, "/v1/limits").send().await.unwrap();
        assert_eq!(call.status(), 401, "a call is no page");
        let form = opened(&world, "/login?next=%2Fkeys").send().await.unwrap();
        assert_eq!(form.status(), 200);
        let form = form.text().await.unwrap();
        assert!(form.contains("name=\"token\"") && form.contains("value=\"/keys\""), "{form}");
        let entered = log_in(&world, TOKEN, "%2Fkeys").await;
        assert_eq!((entered.status().as_u16(), header(&entered, LOCATION)), (303, "/keys".into()));
        let set = header(&entered, SET_COOKIE);
        assert!(set.contains("; HttpOnly; SameSite=Strict") && !set.contains("Secure"), "{set}");
        let cookie = set.split(';').next().unwrap().to_owned();
        let page = opened(&world, "/keys").header(COOKIE, &cookie).send().await.unwrap();
        assert_eq!(page.status(), 200);
        let crossed = world.request(Method::GET, "/v1/limits").header(COOKIE, &cookie);
        answer(crossed.header("origin", "http://evil.example")).await.refused(403, "TG0016", None);
        let left = world.request(Method::POST, "/logout").header(COOKIE, &cookie).send().await.unwrap();
        assert!(header(&left, SET_COOKIE).starts_with("tidegate_token=; Path=/; Max-Age=0"), "{left:?}");
    })
    .await;
}

/// A browser whose token lacks the scope of a page reads so, and can log in with another one. A
/// token that cannot read is not kept.
#[tokio::test]
async fn a_token_without_the_scope_gets_the_form() {
    within(async {
        let world = world().await;
        let entered = log_in(&world, TOKEN, "%2F").await;
        let set = header(&entered, SET_COOKIE);
        let cookie = set.split(';').next().unwrap();
        let refused = opened(&world, "/actions/pause?subject=g").header(COOKIE, cookie).send().await.unwrap();
        assert_eq!(refused.status(), 403);
        let form = refused.text().await.unwrap();
        assert!(form.contains("does not have the scope") && form.contains("name=\"token\""), "{form}");
        assert!(form.contains("value=\"/actions/pause?subject=g\""), "{form}");
        let blind = log_in(&world, BLIND, "%2F").await;
        assert_eq!((blind.status().as_u16(), header(&blind, SET_COOKIE)), (401, String::new()));
        let form = blind.text().await.unwrap();
        assert!(form.contains("does not have the scope"), "{form}");
    })
    .await;
}

/// A wrong token gets the form again, and counts against the address.
#[tokio::test]
async fn a_wrong_token_does_not_log_in() {
    within(async {
        let world = world().await;
        for _ in 0..5 {
            let wrong = log_in(&world, "a-wrong-token", "%2F").await;
            assert_eq!((wrong.status().as_u16(), header(&wrong, SET_COOKIE)), (401, String::new()));
            let form = wrong.text().await.unwrap();
            assert!(form.contains("This token is unknown.") && !form.contains("a-wrong-token"), "{form}");
        }
        let right = log_in(&world, TOKEN, "%2F").await;
        assert_eq!(right.status(), 401, "the address has to wait");
        assert_eq!(world.post("/login", "next=%2F").await.status, 400);
        let elsewhere = world.request(Method::POST, "/login").header("origin", "http://evil.example");
        answer(elsewhere.body(format!("token={TOKEN}"))).await.refused(403, "TG0016", None);
    })
    .await;
}

/// Without tokens there is nothing to log in with.
#[tokio::test]
async fn without_tokens_there_is_no_login() {
    within(async {
        let world = World::new().await;
        let client = Client::builder().redirect(redirect::Policy::none()).build().unwrap();
        let response = client.get(world.url("/login")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), header(&response, LOCATION)), (303, "/".into()));
    })
    .await;
}
