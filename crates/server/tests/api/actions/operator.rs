//! An operator at the page: a browser that shows what it gets and follows no redirect.

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use serde_json::Value;
use tidegate_server::Server;

use crate::support::answer;

/// An operator with a browser that does not follow redirects.
pub(super) struct Operator {
    pub(super) base: String,
    pub(super) client: Client,
    pub(super) token: Option<&'static str>,
}

impl Operator {
    pub(super) fn at(server: &Server) -> Self {
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { base: format!("http://{}", server.addr), client, token: None }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        // As a browser sends it.
        let request = request.header("origin", &self.base).header("sec-fetch-site", "same-origin");
        match self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(super) async fn page(&self, path: &str) -> (u16, String) {
        let response = self.request(Method::GET, path).header("accept", "text/html").send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// The token of a confirm step.
    pub(super) async fn confirm(&self, action: &str, subject: &str) -> String {
        let path = format!("/actions/{action}?subject={}", encoded(subject));
        let (status, html) = self.page(&path).await;
        assert_eq!(status, 200, "{html}");
        value_of(&html, "token")
    }

    pub(super) async fn post(&self, action: &str, fields: &[(&str, &str)]) -> Response {
        let form: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request = self.request(Method::POST, &format!("/actions/{action}"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(form.join("&")).send().await.unwrap()
    }

    /// Opens the confirm step of an action; returns the hidden fields of its form.
    pub(super) async fn open(&self, action: &str, subject: &str) -> Vec<(&'static str, String)> {
        let (status, html) = self.page(&format!("/actions/{action}?subject={}", encoded(subject))).await;
        assert_eq!(status, 200, "{html}");
        let names = ["subject", "token", "seen"].into_iter();
        let given = names.filter(|name| html.contains(&format!("name=\"{name}\"")));
        given.map(|name| (name, value_of(&html, name).replace("&amp;", "&"))).collect()
    }

    /// Sends a form that was opened before; returns the status, and where it leads or what it says.
    pub(super) async fn send(&self, action: &str, form: &[(&'static str, String)]) -> (u16, String) {
        let fields: Vec<_> = form.iter().map(|(name, value)| (*name, &**value)).collect();
        let response = self.post(action, &fields).await;
        let status = response.status().as_u16();
        match response.headers().get("location") {
            Some(target) => (status, target.to_str().unwrap().to_owned()),
            None => (status, response.text().await.unwrap()),
        }
    }

    /// Confirms an action and does it; returns where the form leads.
    pub(super) async fn act(&self, action: &str, subject: &str, more: &[(&str, &str)]) -> String {
        let (status, html) = self.page(&format!("/actions/{action}?subject={}", encoded(subject))).await;
        assert_eq!(status, 200, "{html}");
        let token = value_of(&html, "token");
        let seen = html.contains("name=\"seen\"").then(|| value_of(&html, "seen"));
        let mut fields = vec![("subject", subject), ("token", &token)];
        fields.extend(seen.as_deref().map(|seen| ("seen", seen)));
        fields.extend_from_slice(more);
        let response = self.post(action, &fields).await;
        let status = response.status().as_u16();
        let target = response.headers().get("location").map(|target| target.to_str().unwrap().to_owned());
        target.unwrap_or_else(|| panic!("{action} {subject}: {status}"))
    }

    pub(super) async fn audit(&self) -> Vec<Value> {
        let mut log = answer(self.request(Method::GET, "/v1/audit")).await.json;
        log["entries"].as_array_mut().unwrap().drain(..).collect()
    }
}

/// Where a form leads, without the proof that it was sent.
pub(super) fn unproven(target: &str) -> &str {
    target.split_once("&proof=").expect("there is a proof").0
}

pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The value of a hidden field.
pub(super) fn value_of(html: &str, name: &str) -> String {
    let start = html.find(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {html}"));
    html[start..].split('"').nth(3).unwrap().to_owned()
}

/// The value of a field that is shown.
pub(super) fn value_of_input(html: &str, name: &str) -> String {
    let start = html.find(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("{name}: {html}"));
    let field = html[start..].split('>').next().unwrap();
    field.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}
