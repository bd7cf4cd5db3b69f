//! Two versions on one store. The newer one is played by this test, which writes into the store
//! what a newer version would: a fact of a kind that is not known yet, and a higher format. The
//! nodes are the older ones.

use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tidegate_fixture::postgres::PsqlSession;
use tokio::time::{Instant, sleep, timeout};

use super::load::{self, Load, RetryMode};
use super::node_clients::partition_of;
use super::nodes::Nodes;
use super::store::{Store, ask_redis};
use crate::ALONE;
use crate::child::tidegate;

/// How long the load goes on before and after.
const BETWEEN: Duration = Duration::from_millis(600);
/// In which time every node has noticed: a renewal, a look, and one after the other.
const NOTICED: Duration = Duration::from_secs(20);
/// In which time what is not touched by it is done.
const GOES_ON: Duration = Duration::from_secs(8);
/// How long nothing may leave.
const STILL: Duration = Duration::from_secs(2);
/// Groups that are looked at beside the one that is touched.
const OTHERS: usize = 20;
const LOOK: Duration = Duration::from_millis(100);
/// A format that no version writes yet.
const NEWER: u64 = 99;
const ALL: [usize; 4] = [0, 1, 2, 3];

/// The newer version's hand in the store.
struct StoreTamperer {
    connection: StoreConnection,
    /// What it says to be let in by the nodes.
    secret: String,
}

enum StoreConnection {
    Redis(u16),
    Postgres(Box<PsqlSession>),
}

impl StoreTamperer {
    async fn of(store: &mut Store) -> Self {
        let secret = store.node_secret().await;
        let into = match store {
            Store::Postgres(postgres) => {
                let mut session = postgres.session();
                session.query("SET search_path = tidegate");
                StoreConnection::Postgres(Box::new(session))
            }
            _ => StoreConnection::Redis(store.port()),
        };
        Self { connection: into, secret }
    }

    async fn execute(&mut self, redis: &str, sql: &str) {
        match &mut self.connection {
            StoreConnection::Redis(port) => drop(ask_redis(*port, redis).await),
            StoreConnection::Postgres(session) => drop(tokio::task::block_in_place(|| session.query(sql))),
        }
    }

    /// An append with one fact of a kind that nobody knows yet. No owner comes in between: it holds
    /// the partition.
    async fn append_unknown(&mut self, partition: u16) {
        let script = "local last = redis.call('HINCRBY', KEYS[1], 'last', 1) \
            redis.call('HSET', ARGV[1] .. last, 't', 'newer', 'f', ARGV[2]) return last";
        let redis =
            format!("EVAL \"{script}\" 1 tg:{{{partition}}}:head tg:{{{partition}}}:b: \"\\x01\\x01\\xc8\"");
        let sql = format!(
            "BEGIN; SELECT epoch FROM partitions WHERE partition = {partition} FOR UPDATE;
            INSERT INTO log VALUES ({partition}, last_append({partition}) + 1, '\\x0101c8'); COMMIT"
        );
        self.execute(&redis, &sql).await;
    }

    /// Takes it away again, as a newer version does with the snapshot that replaces it.
    async fn remove_unknown(&mut self, partition: u16) {
        let script = "local last = redis.call('HGET', KEYS[1], 'last') redis.call('DEL', ARGV[1] .. last) \
            return redis.call('HINCRBY', KEYS[1], 'last', -1)";
        let redis = format!("EVAL \"{script}\" 1 tg:{{{partition}}}:head tg:{{{partition}}}:b:");
        let sql = format!("DELETE FROM log WHERE partition = {partition} AND facts = '\\x0101c8'");
        self.execute(&redis, &sql).await;
    }

    /// The format that this version writes.
    const fn format(&self) -> u64 {
        match self.connection {
            StoreConnection::Redis(_) => 3,
            StoreConnection::Postgres(_) => 11,
        }
    }

    async fn set_format(&mut self, format: u64) {
        let sql = format!("UPDATE meta SET value = {format} WHERE name = 'format'");
        self.execute(&format!("SET tg:format {format}"), &sql).await;
    }
}

/// Waits until nobody owns a partition; answers how long that took.
async fn until_nobody_owns(nodes: &Nodes, secret: &str, partition: u16) -> Duration {
    let since = Instant::now();
    let given_up = async {
        loop {
            let mut owned = false;
            for node in ALL {
                owned |= nodes.partitions_of(node, 0).await.contains(&partition);
            }
            if !owned && is_left_by_all(nodes, secret, partition).await {
                return;
            }
            sleep(LOOK).await;
        }
    };
    timeout(NOTICED, given_up).await.expect("every node leaves it to the others");
    since.elapsed()
}

/// Whether no node serves it, by what each of them answers to another node.
async fn is_left_by_all(nodes: &Nodes, secret: &str, partition: u16) -> bool {
    let path = format!("/internal/{partition}/v1/limits");
    for node in ALL {
        let answer = nodes.doors.at(node).call(Method::GET, &path, &[("authorization", secret)], None).await;
        if answer.is_none_or(|(status, _)| status != 421) {
            return false;
        }
    }
    true
}

/// A partition that a newer version has written to: every node leaves it alone, and everything else
/// goes on.
async fn a_fact_of_a_newer_version(nodes: &mut Nodes, hand: &mut StoreTamperer) {
    let operation = |group: &str, n| load::operation("wide", group, n);
    let probe = nodes.doors.submit(&operation("newer", 0)).await;
    nodes.doors.wait_until_ended(&probe).await;
    let partition = partition_of(&probe);
    let mut others = Vec::new();
    for group in (0..OTHERS).map(|n| format!("other{n}")) {
        let id = nodes.doors.submit(&operation(&group, 0)).await;
        others.extend((partition_of(&id) != partition).then_some(group));
    }
    hand.append_unknown(partition).await;
    // Its owner notices when it next writes.
    let refused =
        timeout(NOTICED, nodes.doors.post(&operation("newer", 1))).await.expect("an answer in time");
    let (status, headers, text) = refused.expect("a whole answer");
    assert!(status == 503 && headers.contains_key("retry-after"), "{status} {headers:?} {text}");
    let left_alone = until_nobody_owns(nodes, &hand.secret, partition).await;
    println!("partition {partition} is left alone after {left_alone:?}");
    for group in others {
        let done =
            async { nodes.doors.wait_until_ended(&nodes.doors.submit(&operation(&group, 1)).await).await };
        assert!(timeout(GOES_ON, done).await.is_ok(), "{group} does not go on");
    }
    hand.remove_unknown(partition).await;
    let said = nodes.stop(0).await;
    let told = said.matches("this node cannot read the partition").count();
    assert!(told == 1 && said.contains("a newer version wrote it"), "it was said {told} times");
    nodes.start_again(0);
    let done =
        async { nodes.doors.wait_until_ended(&nodes.doors.submit(&operation("newer", 1)).await).await };
    timeout(NOTICED, done).await.expect("the node that can read it takes it on");
}

/// A store that a newer version has changed: every node stops writing, lives, and says why.
async fn a_layout_of_a_newer_version(nodes: &Nodes, hand: &mut StoreTamperer) {
    hand.set_format(NEWER).await;
    let (newer, secret) = (format!("format {NEWER}"), hand.secret.clone());
    let since = Instant::now();
    let all_stopped = async {
        for partition in 0..super::nodes::PARTITIONS as u16 {
            while !is_left_by_all(nodes, &secret, partition).await {
                sleep(LOOK).await;
            }
        }
    };
    timeout(NOTICED, all_stopped).await.expect("every node stops");
    println!("all have stopped after {:?}", since.elapsed());
    // What was under way may still arrive.
    sleep(BETWEEN).await;
    let calls = || nodes.limited.stats().calls + nodes.wide.stats().calls;
    let before = calls();
    for node in ALL {
        let ask = |path: &'static str| nodes.doors.at(node).call(Method::GET, path, &[], None);
        assert_eq!(ask("/healthz").await.unwrap().0, 200);
        let (status, said) = ask("/readyz").await.unwrap();
        assert!(status >= 500 && said.contains(&newer), "{status} {said}");
    }
    sleep(STILL).await;
    assert_eq!(calls(), before, "calls left");
    let mut late = tidegate();
    late.args(["serve", "--listen", "127.0.0.1:0", "--store", &nodes.store.url()]);
    let late = tokio::task::block_in_place(|| late.output()).unwrap();
    let said = String::from_utf8(late.stderr).unwrap();
    assert!(!late.status.success() && said.contains(&newer), "{said}");
    hand.set_format(hand.format()).await;
}

/// A call that a newer node passes on, and that means nothing to an older one: it is told so, and
/// no more happens.
async fn a_call_of_a_newer_version(nodes: &Nodes, secret: &str) {
    for partition in 0..super::nodes::PARTITIONS {
        let mut answers = Vec::new();
        for node in ALL {
            let path = format!("/internal/{partition}/v1/of-a-newer-version");
            let headers = [("authorization", secret)];
            answers.push(nodes.doors.at(node).call(Method::GET, &path, &headers, None).await.unwrap().0);
        }
        answers.sort_unstable();
        assert_eq!(answers, [404, 421, 421, 421], "the owner says that it does not know it");
    }
    let mut operation: Value = load::operation("wide", "newer", 9);
    operation["of_a_newer_version"] = true.into();
    let (status, _, text) = nodes.doors.post(&operation).await.unwrap();
    assert!((400..500).contains(&status) && text.contains("of_a_newer_version"), "{status} {text}");
}

/// OPS-8, OPS-4, LIM-6: what was acknowledged is carried, in order, through all of it.
async fn two_versions(store: Store) {
    let mut nodes = Nodes::start(ALL.len(), store).await;
    let mut hand = StoreTamperer::of(&mut nodes.store).await;
    a_call_of_a_newer_version(&nodes, &hand.secret).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    a_fact_of_a_newer_version(&mut nodes, &mut hand).await;
    a_layout_of_a_newer_version(&nodes, &mut hand).await;
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    // What was under way when its node had to stop counts as unknown, twice.
    load::check(&nodes, &groups, |_| 2).await;
    load::check_no_step_back(&nodes).await;
}

/// OPS-8, OPS-4, LIM-6, on both stores side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_older_nodes_leave_alone_what_a_newer_version_wrote() {
    let _alone = ALONE.lock().await;
    for day in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(two_versions(store))) {
        day.await.unwrap();
    }
}
