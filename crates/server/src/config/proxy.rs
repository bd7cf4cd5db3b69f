//! The configuration of the proxy: `[proxy]` and `[[proxy.route]]`, over its own defaults.

mod address;
mod policy;
mod scope;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tidegate_idempotency::Policy;
use tidegate_idempotency::proxy::ProxyUpstream;

use super::policy_route::{self, PolicyRoute};
use super::problem::{ConfigProblem, ConfigProblems, SourceText};
use super::seal_keys::{self, SealKeys};
use super::section::{Environment, Section};
use super::value::LocatedValue;
use super::{ParseContext, format_duration, parse, parse_toml, read, read_file};
pub use address::parse_address;
pub use scope::ScopeChoice;

/// The proxy's defaults, with a comment on every key.
pub const PROXY_DEFAULTS: &str = include_str!("proxy.toml");

/// The configuration of the proxy.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where requests are sent on to.
    pub upstream: ProxyUpstream,
    /// Where they are taken.
    pub listen: SocketAddr,
    /// Where health and metrics are served.
    pub admin_listen: SocketAddr,
    /// Where keys are kept.
    pub store_url: String,
    /// How keys are scoped to callers.
    pub scope: ScopeChoice,
    /// The keys that seal stored responses.
    pub sealing: Option<SealKeys>,
    /// The maximum number of concurrent client connections.
    pub connections_max: usize,
    /// The maximum total size of buffered request bodies with a key, in bytes.
    pub bodies_max: usize,
    /// How long a client may take to send the headers, and may pause within a body.
    pub read_timeout: Duration,
    /// How long a shutdown waits for requests in flight.
    pub drain: Duration,
    /// The default policy.
    pub policy: Policy,
    /// The policies of routes.
    pub routes: Vec<PolicyRoute>,
}

/// Command-line options, which override everything else.
#[derive(Clone, Debug, Default)]
pub struct ProxyOverrides {
    /// Where requests are sent on to.
    pub upstream: Option<String>,
    /// Where they are taken.
    pub listen: Option<SocketAddr>,
    /// Where health and metrics are served.
    pub admin_listen: Option<SocketAddr>,
    /// Where keys are kept.
    pub store_url: Option<String>,
    /// How long a response is kept.
    pub ttl: Option<Duration>,
    /// The header that identifies the caller.
    pub scope_header: Option<String>,
    /// Whether callers are not distinguished.
    pub unscoped: bool,
}

impl ProxyConfig {
    /// Loads the configuration of this process: from the file, if there is one, and the
    /// environment.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load(file: Option<&Path>, over: &ProxyOverrides) -> Result<Self, ConfigProblems> {
        let env = |name: &str| std::env::var(name).ok();
        let set: Vec<_> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        match file {
            Some(path) => Self::parse(&path.display().to_string(), &read_file(path)?, &env, over, &set),
            // Without a file, a missing setting is missing from the command line.
            None => Self::parse("defaults", "", &env, over, &set)
                .map_err(|problems| problems.relocate("defaults:1:1", "tidegate proxy")),
        }
    }

    /// Whether a file configures the proxy: whether it has a `[proxy]` table.
    ///
    /// # Errors
    /// When it cannot be read or is not TOML.
    pub fn is_proxy_file(file: &Path) -> Result<bool, ConfigProblems> {
        let (name, text) = (file.display().to_string(), read_file(file)?);
        let table = parse_toml(SourceText { name: &name, text: &text })?;
        Ok(table.get_ref().contains_key("proxy"))
    }

    /// Parses a text; `name` is its name in messages, `set` are the variables that are set.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(
        name: &str,
        text: &str,
        env: Environment<'_>,
        over: &ProxyOverrides,
        set: &[String],
    ) -> Result<Self, ConfigProblems> {
        parse(SourceText { name, text }, PROXY_DEFAULTS, env, set, |root, reading| {
            read_all(root, reading, over)
        })
    }
}

fn read_all(
    root: &mut Section<'_>,
    reading: &mut ParseContext<'_>,
    over: &ProxyOverrides,
) -> Option<ProxyConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("proxy", problems);
    let upstream = read_upstream(&mut section, over, problems);
    let listen = address::read(&mut section, "listen", ("--listen", over.listen), problems);
    let admin = address::read(&mut section, "admin_listen", ("--admin", over.admin_listen), problems);
    address::check(listen.as_ref(), admin.as_ref(), upstream.as_ref(), problems);
    let upstream = upstream.map(|found| found.value);
    let store = section
        .text("store", problems)
        .map(|found| found.override_by_flag("--store", over.store_url.clone()));
    let store_url = store.and_then(|found| read::check_store(found, problems));
    let scope = scope::read(&mut section, over, problems);
    let seal_key_env = section.text("seal_key_env", problems);
    let connections_max = section.integer("connections_max", 1..=1_000_000, problems);
    let bodies_max = section.size("bodies_max", problems);
    let read_timeout = read_bounded(&mut section, "read_timeout", 1, 3_600, problems);
    let drain = read_bounded(&mut section, "drain", 0, 86_400, problems);
    let mut usual = policy::read(&mut section, &policy::PolicyChoices::default(), problems);
    if let Some(ttl) = over.ttl {
        match (Policy::default().with_ttl(ttl)).check() {
            Ok(()) => usual.policy.ttl = ttl,
            Err(wrong) => {
                let message = format!("It cannot be used: {wrong}, not {}.", format_duration(ttl));
                problems.push(LocatedValue::from_flag("--ttl", ttl).problem(message));
            }
        }
    }
    let answer_max = upstream.as_ref().map(|upstream| upstream.connect_timeout + upstream.answer_timeout);
    policy::check(&section, &usual.policy, answer_max, problems);
    if let Some(bodies_max) = bodies_max.filter(|most| *most < usual.policy.request_max) {
        let message =
            format!("It is {bodies_max} bytes; it must be at least request_max, or no such body fits.");
        problems.push(section.problem_at("bodies_max", message));
    }
    let routes = section.sections("route", problems);
    section.finish(problems);
    let routes = policy_route::read(routes, problems, |section, problems| {
        let policy = policy::read(section, &usual, problems).policy;
        policy::check(section, &policy, answer_max, problems);
        policy
    });
    let sealing = seal_keys::read(seal_key_env, reading);
    Some(ProxyConfig {
        upstream: upstream?,
        listen: listen?.value,
        admin_listen: admin?.value,
        store_url: store_url?,
        scope: scope?,
        sealing,
        connections_max: usize::try_from(connections_max?).ok()?,
        bodies_max: bodies_max?,
        read_timeout: read_timeout?,
        drain: drain?,
        policy: usual.policy,
        routes,
    })
}

fn read_upstream(
    section: &mut Section<'_>,
    over: &ProxyOverrides,
    problems: &mut Vec<ConfigProblem>,
) -> Option<LocatedValue<ProxyUpstream>> {
    let url = section.text("upstream", problems);
    let preserve_host = section.switch("preserve_host", problems);
    let rewrite_links = section.switch("rewrite_links", problems);
    let http2 = section.switch("http2", problems);
    let connect_timeout = section.duration("connect_timeout", problems);
    let answer_timeout = section.duration("answer_timeout", problems);
    let said = over.upstream.clone().map(|value| LocatedValue::from_flag("--upstream", value));
    let Some(url) = said.or(url) else {
        let message = "The upstream is missing: give --upstream URL, or upstream = \"URL\" in [proxy].";
        problems.push(section.problem(message));
        return None;
    };
    let sentence = |error: &dyn std::fmt::Display| format!("This cannot be used: {error}.");
    let mut upstream = ProxyUpstream::from_url(&url.value)
        .map_err(|error| problems.push(url.problem(sentence(&error))))
        .ok()?;
    upstream.preserve_host = preserve_host?;
    upstream.rewrite_links = rewrite_links?;
    upstream.http2 = http2?;
    upstream.connect_timeout = connect_timeout?;
    upstream.answer_timeout = answer_timeout?;
    upstream.check().map_err(|error| problems.push(section.problem(sentence(&error)))).ok()?;
    Some(LocatedValue { value: upstream, at: url.at, key_path: url.key_path })
}

fn read_bounded(
    section: &mut Section<'_>,
    key: &'static str,
    least_s: u64,
    most_s: u64,
    problems: &mut Vec<ConfigProblem>,
) -> Option<Duration> {
    let found = section.duration(key, problems)?;
    if (Duration::from_secs(least_s)..=Duration::from_secs(most_s)).contains(&found) {
        return Some(found);
    }
    problems.push(section.problem_at(key, format!("It must be {least_s}s to {most_s}s.")));
    None
}
