//! Environment variables that start with our prefix and are unknown. A misspelled one would be
//! ignored silently, so it is refused; variables that other programs set are left alone.

use strsim::levenshtein;

use super::problem::{ConfigProblem, SourceLocation};
use super::section::Environment;

const PREFIX: &str = "TIDEGATE_";
const NAMED_LIKE: &str =
    "Each key of a section of the configuration has one, such as TIDEGATE_STORE_URL for url in [store].";
/// Variables that other parts read: the log, the commands that call a server, the tests.
const OTHER_VARIABLES: [&str; 4] = ["TIDEGATE_LOG", "TIDEGATE_SEED", "TIDEGATE_SERVER", "TIDEGATE_TOKEN"];
/// Variables by which scripts and container images name the program itself. No key is spelled like
/// them.
const OF_SCRIPTS: [&str; 4] = ["TIDEGATE_BIN", "TIDEGATE_HOME", "TIDEGATE_IMAGE", "TIDEGATE_VERSION"];

/// Returns a problem for each variable in `set` that starts with our prefix and is not in `asked`.
pub(super) fn problems(set: &[String], asked: &[String], env: Environment<'_>) -> Vec<ConfigProblem> {
    let mut known: Vec<&str> = asked.iter().map(String::as_str).chain(OTHER_VARIABLES).collect();
    known.retain(|name| name.starts_with(PREFIX));
    known.sort_unstable();
    known.dedup();
    let strange = |name: &&String| {
        let name = name.as_str();
        name.starts_with(PREFIX)
            && !known.contains(&name)
            && !OF_SCRIPTS.contains(&name)
            && !is_service_link(name, env)
    };
    let problem = |name: &String| {
        let message = match nearest(name, &known) {
            Some(meant) => format!("There is no such variable; did you mean {meant}?"),
            None => format!("There is no such variable. {NAMED_LIKE}"),
        };
        ConfigProblem { at: SourceLocation::outside_file(name), key_path: String::new(), message }
    };
    set.iter().filter(strange).map(problem).collect()
}

/// Whether Kubernetes sets this variable, in every container next to a service whose name starts
/// with tidegate.
fn is_service_link(name: &str, env: Environment<'_>) -> bool {
    let value = env(name).unwrap_or_default();
    let is_url = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let of_port = ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| name.contains(protocol));
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT") && is_url
        || name.contains("_PORT_") && of_port
}

/// The known name that only has a section more, or else the most similar one, if it is similar
/// enough.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let of_a_section = known.iter().find(|known| known.ends_with(&name[PREFIX.len() - 1..]));
    if let Some(meant) = of_a_section {
        return Some(meant);
    }
    let (changes, meant) = known.iter().map(|known| (levenshtein(name, known), *known)).min()?;
    (changes <= (meant.len() - PREFIX.len()).div_ceil(2)).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_set_is_left_alone() {
        let env = |name: &str| {
            let link = ["TIDEGATE_PORT", "TIDEGATE_SERVER_PORT"].contains(&name);
            Some(if link { "tcp://10.0.0.7:7400".to_owned() } else { "7400".to_owned() })
        };
        let printed =
            |name: &str| !problems(&[name.to_owned()], &["TIDEGATE_STORE_URL".to_owned()], &env).is_empty();
        for name in [
            "HOME",
            "TIDEGATE",
            "TIDEGATE_LOG",
            "TIDEGATE_BIN",
            "TIDEGATE_SERVICE_HOST",
            "TIDEGATE_SERVICE_PORT_HTTP",
            "TIDEGATE_PORT",
            "TIDEGATE_PORT_7400_TCP_ADDR",
            "TIDEGATE_SERVER_PORT",
            "TIDEGATE_STORE_URL",
        ] {
            assert!(!printed(name), "{name}");
        }
        for name in ["TIDEGATE_STORE_ULR", "TIDEGATE_STORE_PORT", "TIDEGATE_", "TIDEGATE_store_url"] {
            assert!(printed(name), "{name}");
        }
    }
}
