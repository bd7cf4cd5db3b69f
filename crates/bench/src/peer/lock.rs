//! Versions of peers, from their lock files.

use serde_json::Value;

/// Returns the version of a package in a lock file of cargo.
pub(crate) fn cargo_version(lock: &str, package: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next().map(ToOwned::to_owned)
}

/// Returns the version of a package in a lock file of npm.
pub(super) fn npm_version(lock: &str, package: &str) -> Option<String> {
    let lock: Value = serde_json::from_str(lock).ok()?;
    let version = lock.get("packages")?.get(format!("node_modules/{package}"))?.get("version")?;
    version.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_lock_file_of_cargo() {
        let lock = "[[package]]\nname = \"effectum-x\"\nversion = \"9.9.9\"\n\n[[package]]\nname = \"effectum\"\nversion = \"0.7.0\"\n";
        assert_eq!(cargo_version(lock, "effectum").as_deref(), Some("0.7.0"));
        assert_eq!(cargo_version(lock, "other"), None);
    }

    #[test]
    fn a_version_is_read_from_a_lock_file_of_npm() {
        let lock =
            r#"{"packages": {"node_modules/a": {"version": "1.2.3"}, "node_modules/b/node_modules/c": {}}}"#;
        assert_eq!(npm_version(lock, "a").as_deref(), Some("1.2.3"));
        assert_eq!(npm_version(lock, "c"), None);
        assert_eq!(npm_version("no json", "a"), None);
    }

    /// Our own lock files have exact versions and no registry URLs: the choice is the reader's.
    #[test]
    fn the_lock_files_of_the_peers_name_versions_and_no_place() {
        let queues = (
            include_str!("../../peers/node/package-lock.json"),
            include_str!("../../peers/node/package.json"),
            ["bullmq", "groupmq", "pg-boss"].as_slice(),
        );
        let shopify = (
            include_str!("../../peers/shopify/package-lock.json"),
            include_str!("../../peers/shopify/package.json"),
            ["shopify-api-node"].as_slice(),
        );
        let discord = (
            include_str!("../../peers/discord-js/package-lock.json"),
            include_str!("../../peers/discord-js/package.json"),
            ["@discordjs/rest"].as_slice(),
        );
        for (lock, manifest, peers) in [queues, shopify, discord] {
            assert!(!lock.contains("\"resolved\""), "the lock file has download addresses");
            let manifest: Value = serde_json::from_str(manifest).unwrap();
            let wanted = manifest["dependencies"].as_object().unwrap();
            assert!(peers.iter().all(|peer| wanted.contains_key(*peer)));
            for (package, version) in wanted {
                assert_eq!(npm_version(lock, package).as_deref(), version.as_str(), "{package}");
            }
        }
    }
}
