//! The settings of a node in a cluster: `[cluster]`.

use std::net::SocketAddr;

use tidegate_upstream::Secret;

use super::problem::ConfigProblem;
use super::section::Section;
use super::{ClusterConfig, ParseContext};

/// The maximum number of partitions: a node polls all of them every second.
const PARTITIONS_MAX: u64 = 1_024;
/// The shortest secret between nodes, in bytes.
const TOKEN_LEN_MIN: usize = 16;

pub(super) fn read(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<ClusterConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("cluster", problems);
    let advertise = section.text("advertise", problems);
    let partitions = section.integer("partitions", 1..=PARTITIONS_MAX, problems);
    let variable = section.text("token_env", problems);
    section.finish(problems);
    let advertise = advertise.filter(|found| !found.value.is_empty());
    if let Some(found) = &advertise
        && !is_address(&found.value)
    {
        problems.push(found.problem("It must be a host and a port, such as node-1:7400."));
    }
    let token = variable.filter(|found| !found.value.is_empty()).and_then(|found| {
        let token = reading.secret(&found)?;
        if token.len() < TOKEN_LEN_MIN {
            let message = format!("The variable {} must hold at least {TOKEN_LEN_MIN} bytes.", found.value);
            reading.problems.push(found.problem(message));
        }
        Some(Secret::new(token))
    });
    let partitions = u16::try_from(partitions?).ok()?;
    Some(ClusterConfig { advertise: advertise.map(|found| found.value), partitions, token })
}

/// Checks that the other nodes can reach this node, and that it is safe where it listens.
pub(super) fn check(
    root: &mut Section<'_>,
    cluster: &ClusterConfig,
    listen: SocketAddr,
    problems: &mut Vec<ConfigProblem>,
) {
    let section = root.section("cluster", problems);
    if cluster.advertise.is_none() && listen.ip().is_unspecified() {
        let message = format!("advertise is missing: other nodes cannot reach {listen} by that name.");
        problems.push(section.problem_at("advertise", message));
    }
    if cluster.token.is_none() && !listen.ip().is_loopback() {
        let message = "token_env is missing: nodes that can be reached from other machines need a secret.";
        problems.push(section.problem_at("token_env", message));
    }
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}
