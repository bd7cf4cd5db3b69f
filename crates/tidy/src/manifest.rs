//! The manifests of the crates: the package of each folder, and its dependencies.

use std::collections::BTreeMap;

use crate::repository::{File, files};

/// One crate, by its folder.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub folder: String,
    pub package: String,
    /// Its dependencies by package name; dev-dependencies are not restricted.
    pub dependencies: Vec<String>,
    pub file: File,
}

impl Manifest {
    pub(crate) fn parse(file: File) -> Self {
        let table: toml::Table = file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
        let folder = file.path.split('/').nth(1).expect("it is crates/<folder>/Cargo.toml").to_owned();
        let package = table["package"]["name"].as_str().expect("a package has a name").to_owned();
        let mut dependencies = names(&table);
        if let Some(targets) = table.get("target").and_then(toml::Value::as_table) {
            dependencies.extend(targets.values().filter_map(toml::Value::as_table).flat_map(names));
        }
        Self { folder, package, dependencies, file }
    }

    /// The line that names a dependency.
    pub(crate) fn line_of(&self, dependency: &str) -> usize {
        let named = |line: &str| {
            line.split(['.', '=', ' ', ']']).next() == Some(dependency)
                || line.contains(&format!("\"{dependency}\""))
        };
        self.file.lines().find(|(_, line)| named(line)).map_or(1, |(number, _)| number)
    }
}

/// All crates, by folder.
pub(crate) fn manifests() -> BTreeMap<String, Manifest> {
    let of_a_crate = |file: &File| {
        let parts: Vec<_> = file.path.split('/').collect();
        parts.len() == 3 && parts[2] == "Cargo.toml"
    };
    let found = files("crates").into_iter().filter(of_a_crate).map(Manifest::parse);
    found.map(|manifest| (manifest.folder.clone(), manifest)).collect()
}

fn names(table: &toml::Table) -> Vec<String> {
    let of = |section: &str| table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
    let renamed =
        |value: &toml::Value| value.get("package").and_then(|name| name.as_str()).map(str::to_owned);
    of("dependencies")
        .chain(of("build-dependencies"))
        .map(|(name, value)| renamed(value).unwrap_or_else(|| name.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_dependency_is_seen() {
        let text = "[package]\nname = \"p\"\n[dependencies]\na.workspace = true\nb = { package = \"c\", version = \"1\" }\n[build-dependencies]\nd = \"1\"\n[target.'cfg(unix)'.dependencies]\ne = \"1\"\n[dev-dependencies]\nf = \"1\"\n";
        let manifest = Manifest::parse(File::new("crates/x/Cargo.toml", text));
        assert_eq!(manifest.dependencies, ["a", "c", "d", "e"]);
        assert_eq!((manifest.folder.as_str(), manifest.package.as_str()), ("x", "p"));
        assert_eq!((manifest.line_of("a"), manifest.line_of("c"), manifest.line_of("e")), (4, 5, 9));
    }
}
