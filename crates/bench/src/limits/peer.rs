//! The servers' own benchmarks: `redis-benchmark` with a script that increments a key, `pgbench`
//! with an update of one row. Both store as little as a limiter could, and neither decides
//! anything.

use std::process::{Command, Stdio};

use super::LoadShape;

/// The smallest script that stores something.
const SCRIPT: &str = "return redis.call('incr',KEYS[1])";
const KEY: &str = "tidegate-bench:counter";
const TABLE: &str = "tidegate_bench_counter";
const UPDATE: &str = "UPDATE tidegate_bench_counter SET n = n + 1;";
/// Steps for a rough estimate of its speed.
const CALIBRATION: u64 = 20_000;

/// A server's own benchmark.
#[derive(Debug)]
pub(super) enum ServerBenchmark {
    /// `redis-benchmark`, with the script's hash.
    Redis {
        url: String,
        hash: String,
    },
    Postgres {
        url: String,
    },
}

impl ServerBenchmark {
    /// Returns the peer of a store, if there is one and it is installed.
    pub(super) fn of(store: &str) -> Result<Option<Self>, String> {
        let url = store.split('?').next().unwrap_or_default().to_owned();
        let tool = match store.split(':').next() {
            Some("redis") => "redis-benchmark",
            Some("postgres" | "postgresql") => "pgbench",
            _ => return Ok(None),
        };
        if output(Command::new(tool).arg("--version")).is_err() {
            eprintln!("{tool} is not installed: there is nothing to compare with");
            return Ok(None);
        }
        if tool == "pgbench" {
            psql(&url, &format!("DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} (n bigint)"))?;
            psql(&url, &format!("INSERT INTO {TABLE} VALUES (0)"))?;
            return Ok(Some(Self::Postgres { url }));
        }
        let hash = redis_cli(&url, &["SCRIPT", "LOAD", SCRIPT])?;
        Ok(Some(Self::Redis { url, hash }))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Redis { .. } => format!("redis-benchmark EVALSHA {SCRIPT:?}"),
            Self::Postgres { .. } => format!("pgbench -M prepared {UPDATE:?}"),
        }
    }

    /// Returns the steps per second.
    pub(super) fn measure(&self, shape: LoadShape) -> Result<f64, String> {
        match self {
            Self::Redis { url, hash } => {
                let about = redis_benchmark(url, hash, shape, CALIBRATION)?;
                let steps = (about * shape.time.as_secs_f64()) as u64;
                redis_benchmark(url, hash, shape, steps.max(CALIBRATION))
            }
            Self::Postgres { url } => pgbench(url, shape),
        }
    }
}

impl Drop for ServerBenchmark {
    fn drop(&mut self) {
        // What stays behind does no harm.
        let _ = match self {
            Self::Redis { url, .. } => redis_cli(url, &["DEL", KEY]),
            Self::Postgres { url } => psql(url, &format!("DROP TABLE IF EXISTS {TABLE}")),
        };
    }
}

fn redis_benchmark(url: &str, hash: &str, shape: LoadShape, steps: u64) -> Result<f64, String> {
    redis_cli(url, &["DEL", KEY])?;
    let (clients, deep, steps) = (shape.connections.to_string(), shape.deep.to_string(), steps.to_string());
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-u", url, "-c", &clients, "-P", &deep, "-n", &steps, "--csv"]);
    let said = output(benchmark.args(["EVALSHA", hash, "1", KEY]))?;
    // It counts refusals as steps, so its output is compared with what it did.
    let counted: u64 = redis_cli(url, &["GET", KEY])?.parse().unwrap_or_default();
    if counted < steps.parse().unwrap_or(u64::MAX) {
        return Err(format!("redis-benchmark made {counted} of {steps} steps"));
    }
    // "name","requests each second",…: the name contains no comma.
    let figure = said.lines().last().and_then(|line| line.split(',').nth(1));
    figure
        .and_then(|figure| figure.trim_matches('"').parse().ok())
        .ok_or_else(|| format!("redis-benchmark printed something other than a figure: {said}"))
}

fn pgbench(url: &str, shape: LoadShape) -> Result<f64, String> {
    let script = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(script.path(), UPDATE).map_err(|error| error.to_string())?;
    let (clients, seconds) = (shape.connections.to_string(), shape.time.as_secs().max(1).to_string());
    let mut benchmark = Command::new("pgbench");
    benchmark.args(["-n", "-M", "prepared", "-j", "2", "-c", &clients, "-T", &seconds, "-f"]);
    let said = output(benchmark.arg(script.path()).arg(url))?;
    let figure = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
    figure
        .and_then(|figure| figure.parse().ok())
        .ok_or_else(|| format!("pgbench printed something other than a figure: {said}"))
}

fn redis_cli(url: &str, command: &[&str]) -> Result<String, String> {
    output(Command::new("redis-cli").args(["--no-auth-warning", "-u", url]).args(command))
}

fn psql(url: &str, command: &str) -> Result<String, String> {
    output(Command::new("psql").args(["-q", "-c", command]).arg(url))
}

/// Runs a command and returns its output if it succeeds.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("{name} failed: {}", said.trim()));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned())
}
