//! Where results are kept: `storage` of `[generations]`, a folder or `[generations.storage]`.

use std::path::PathBuf;

use tidegate_dispatch::storage::{S3Addressing, S3Config};
use tidegate_upstream::Secret;

use super::super::ParseContext;
use super::super::read::check_url;
use super::super::section::Section;

/// Where results of generations are kept.
#[derive(Clone, Debug)]
pub enum ResultStorageConfig {
    /// A folder of this machine, or one that all nodes mount.
    Folder(PathBuf),
    /// A bucket of S3, or of a service that speaks its protocol.
    S3(S3Config),
}

const ADDRESSING: [(&str, S3Addressing); 2] =
    [("path", S3Addressing::Path), ("virtual_host", S3Addressing::VirtualHost)];

pub(super) fn read(section: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<ResultStorageConfig> {
    let problems = &mut reading.problems;
    if !section.has_table("storage") {
        let folder = section.text("storage", problems)?;
        if folder.value.is_empty() {
            problems.push(folder.problem("It must be a folder, or [generations.storage]."));
            return None;
        }
        return Some(ResultStorageConfig::Folder(PathBuf::from(folder.value)));
    }
    let mut storage = section.section("storage", problems);
    let kind = storage.text("kind", problems);
    let [endpoint, region, bucket] = ["endpoint", "region", "bucket"].map(|key| storage.text(key, problems));
    let [access_key, secret_key] =
        ["access_key_env", "secret_key_env"].map(|key| storage.text(key, problems));
    let addressing = storage.word("addressing", &ADDRESSING, problems).unwrap_or_default();
    for key in ["kind", "endpoint", "region", "bucket", "access_key_env", "secret_key_env"] {
        if !storage.has(key) {
            problems.push(storage.problem(format!("The key {key} is missing.")));
        }
    }
    if let Some(kind) = kind.filter(|kind| kind.value != "s3") {
        problems.push(kind.problem("It must be \"s3\"; a folder is storage = \"FOLDER\" in [generations]."));
    }
    if let Some(endpoint) = &endpoint {
        check_url(endpoint, problems);
    }
    storage.finish(problems);
    let mut secret = |variable: Option<_>| reading.secret(&variable?);
    let (access_key, secret_key) = (secret(access_key), secret(secret_key));
    Some(ResultStorageConfig::S3(S3Config {
        endpoint: endpoint?.value,
        region: region?.value,
        bucket: bucket?.value,
        addressing,
        access_key_id: access_key?,
        secret_access_key: Secret::new(secret_key?),
    }))
}
