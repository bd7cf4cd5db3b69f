//! `tidegate deploy` as its users run it: against the simulator, through bad days, killed and run
//! again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::time::sleep;

use crate::caller::Caller;
use crate::child::tidegate;

const GUILD: &str = "4177";
const TOKEN: &str = "hunter2-of-the-bot";
/// How long a plan may take on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guilds").join(name)
}

/// A simulator whose routes are wider than what a test needs.
async fn start_wide_sim(mut options: DiscordSimOptions) -> DiscordSim {
    options.limits.set("routes", 1_000, 1_000).unwrap();
    DiscordSim::start(options).await.unwrap()
}

/// A command for the guild of a simulator, in a folder of its own. It does not ask.
fn deploy(verb: &str, sim: &DiscordSim, dir: &Path, template: &Path) -> Command {
    let mut command = asking_deploy(verb, sim, dir, template);
    command.args((verb == "apply").then_some("--yes"));
    command
}

/// The same command, which asks before it applies.
fn asking_deploy(verb: &str, sim: &DiscordSim, dir: &Path, template: &Path) -> Command {
    let mut command = tidegate();
    command.args(["deploy", verb, "--guild", GUILD, "--template"]).arg(template).current_dir(dir);
    command.arg("--base-url").arg(format!("http://{}/api/v10", sim.addr()));
    command.env("DISCORD_TOKEN", TOKEN);
    command
}

/// Runs a command that gets this answer to its question.
async fn run_with_answer(mut command: Command, answer: &'static str) -> Output {
    let run = move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(output: &Output) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(TOKEN), "the token is told: {text}");
    text
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came: {what}");
}

/// OPS-19: a plan that was stopped while it asked the wrong address leaves nothing that the next
/// one waits for.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_a_stopped_plan_leaves_nothing_that_blocks() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    // It accepts calls and answers none.
    let wrong = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut plan = tidegate();
    plan.args(["deploy", "plan", "--guild", GUILD, "--template"]).arg(&small).current_dir(dir.path());
    plan.arg("--base-url").arg(format!("http://{}/api/v10", wrong.local_addr().unwrap()));
    plan.env("DISCORD_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::null());
    let mut stopped = plan.spawn().unwrap();
    let _call = wrong.accept().await.unwrap();
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    let mut next = deploy("plan", &sim, dir.path(), &small);
    let mut next = next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = tokio::time::Instant::now();
    while next.try_wait().unwrap().is_none() && since.elapsed() < BOUND {
        sleep(Duration::from_millis(20)).await;
    }
    // One that still waits for the plan that was stopped ends here.
    let _ = next.kill();
    let planned = next.wait_with_output().unwrap();
    assert!(planned.status.success() && text(&planned).contains("14 to create"), "{}", text(&planned));
}

/// OPS-20: with the token of another bot, which cannot edit the messages of the first, a plan and a
/// deployment stop and name the message, with the journal and without it.
#[tokio::test(flavor = "multi_thread")]
async fn ops_20_a_message_of_another_bot_is_named() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    let applied = run(deploy("apply", &sim, dir.path(), &small)).await;
    assert!(applied.status.success(), "{}", text(&applied));
    let (writes, elsewhere) = (sim.stats().all.writes, TempDir::new().unwrap());
    for (verb, dir) in [("plan", &dir), ("apply", &dir), ("plan", &elsewhere)] {
        let mut command = deploy(verb, &sim, dir.path(), &small);
        command.env("DISCORD_TOKEN", "the-token-of-another-bot");
        let refused = run(command).await;
        let told = text(&refused);
        assert!(!refused.status.success() && told.contains("was posted by another bot"), "{verb}: {told}");
    }
    assert_eq!(sim.stats().all.writes, writes, "nothing is posted twice");
}

/// OPS-19: plan, apply, apply again, status; as text and as JSON. Nothing is written twice, and the
/// token is told nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_a_guild_is_planned_applied_and_told() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    let of = |verb: &str| deploy(verb, &sim, dir.path(), &small);
    let planned = run(of("plan")).await;
    let told = text(&planned);
    assert!(
        planned.status.success()
            && told.contains("Guild 4177: 14 to create, 2 to put in order.")
            && told.contains("+ role lead"),
        "{told}"
    );
    assert!(told.contains("Do not rename managed objects"), "OPS-16: {told}");
    assert_eq!(sim.stats().all.writes, 0);
    let applied = run(of("apply")).await;
    assert!(applied.status.success() && text(&applied).contains("14 created"), "{}", text(&applied));
    let mut again = of("apply");
    again.arg("--json");
    let again = read(&run(again).await);
    assert_eq!((&again["created"], &again["skipped"]), (&0.into(), &14.into()), "{again}");
    let mut status = tidegate();
    status.args(["deploy", "status", "--json", "--guild", GUILD]).current_dir(dir.path());
    let status = read(&run(status).await);
    assert_eq!(status["deployments"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!(status["deployment"]["counts"]["applied"], 14, "{status}");
    assert_eq!((sim.stats().all.writes, sim.stats().all.duplicates), (14, 0));
    let first = status["deployments"][1]["id"].as_str().unwrap();
    let mut events = tidegate();
    events.args(["deploy", "events", "--guild", GUILD, "--deployment", first]).current_dir(dir.path());
    let told = text(&run(events).await);
    let line = |event: &str| told.lines().position(|line| line.contains("role lead") && line.contains(event));
    assert!(line("planned") < line("applied") && line("planned").is_some(), "OPS-17: {told}");
    let mut events = tidegate();
    events.args(["deploy", "events", "--json", "--guild", GUILD]).current_dir(dir.path());
    let events = read(&run(events).await);
    assert_eq!((&events["dropped"], events["events"].as_array().unwrap().len()), (&0.into(), 14), "{events}");
}

/// OPS-19: what is wrong with a template is told before anything else, with its place; a missing
/// token likewise.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_a_wrong_template_is_told_with_its_place() {
    let (sim, dir) = (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap());
    let file = dir.path().join("guild.yaml");
    std::fs::write(
        &file,
        "roles:\n  - key: a\n    nam: A\nchannels:\n  - key: c\n    name: C\n    category: nowhere\n",
    )
    .unwrap();
    let wrong = run(deploy("apply", &sim, dir.path(), &file)).await;
    let told = text(&wrong);
    assert_eq!(wrong.status.code(), Some(1), "{told}");
    assert!(told.contains("guild.yaml:3:5") && told.contains("guild.yaml:7:15"), "{told}");
    let mut tokenless = deploy("apply", &sim, dir.path(), &example("small.yaml"));
    tokenless.env_remove("DISCORD_TOKEN");
    let tokenless = run(tokenless).await;
    assert_eq!(tokenless.status.code(), Some(2));
    assert!(text(&tokenless).contains("DISCORD_TOKEN"), "{}", text(&tokenless));
    let mut prefixed = deploy("apply", &sim, dir.path(), &example("small.yaml"));
    prefixed.env("DISCORD_TOKEN", "Bot abc");
    let prefixed = run(prefixed).await;
    assert!(
        prefixed.status.code() == Some(2) && text(&prefixed).contains("the token alone"),
        "{}",
        text(&prefixed)
    );
    assert_eq!(sim.stats().all.calls, 0);
}

/// OPS-19: a template, or a folder of them, is checked without a token and without a call, all
/// problems at once.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_templates_are_checked_without_a_guild() {
    let dir = TempDir::new().unwrap();
    let validate = |place: &str, json: bool| {
        let mut command = tidegate();
        command.args(["deploy", "validate", place]).args(json.then_some("--json"));
        command.current_dir(dir.path()).env_remove("DISCORD_TOKEN");
        run(command)
    };
    std::fs::copy(example("small.yaml"), dir.path().join("small.yaml")).unwrap();
    let valid = validate(".", false).await;
    assert!(valid.status.success() && text(&valid).contains("small.yaml: valid: 4 roles"), "{valid:?}");
    let first = "roles:\n  - key: a\n    nam: A\nchannels:\n  - key: c\n    name: C\n    category: nowhere\n";
    std::fs::write(dir.path().join("a.yaml"), first).unwrap();
    std::fs::write(dir.path().join("b.yml"), "rolls: []\n").unwrap();
    let wrong = validate(".", false).await;
    let said = text(&wrong);
    assert_eq!(wrong.status.code(), Some(1), "as a plan: {said}");
    for place in ["a.yaml:3:5: ", "a.yaml:7:15: ", "b.yml:1:1: ", "small.yaml: valid"] {
        assert!(said.contains(place), "{place}: {said}");
    }
    let scripted = validate(".", true).await;
    let error: Value = serde_json::from_slice(&scripted.stderr).unwrap();
    let problems = error["error"]["detail"]["problems"].as_array().unwrap();
    assert_eq!((&error["error"]["code"], scripted.stdout.len()), (&"TG0028".into(), 0), "{error}");
    assert!(problems.iter().any(|one| one["line"] == 7 && one["column"] == 15), "{error}");
    assert_eq!(validate("missing.yaml", false).await.status.code(), Some(2));
    assert!(!dir.path().join("tidegate-data").exists(), "nothing is stored");
}

/// OPS-19: a plan in a file can be looked at again, as it was shown, without a call and without a
/// token.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_a_plan_in_a_file_is_shown_again() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    let mut plan = deploy("plan", &sim, dir.path(), &small);
    plan.args(["--out", "small.plan"]);
    let planned = run(plan).await;
    let calls = sim.stats().all.calls;
    let show = |json: bool| {
        let mut show = tidegate();
        show.args(["deploy", "show", "small.plan"]).args(json.then_some("--json"));
        show.current_dir(dir.path()).env_remove("DISCORD_TOKEN");
        run(show)
    };
    let shown = show(false).await;
    assert!(shown.status.success() && text(&shown).contains("+ role lead"), "{shown:?}");
    let planned = text(&planned).replace("reading the guild\n", "");
    assert_eq!(text(&shown), planned, "to the letter, with what to do next");
    let json = read(&show(true).await);
    assert_eq!((&json["plan"]["writes"], json["digest"].is_string()), (&16.into(), true), "{json}");
    assert_eq!(sim.stats().all.calls, calls);
    let file = dir.path().join("small.plan");
    let mut older: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    older.as_object_mut().unwrap().remove("shown");
    std::fs::write(&file, older.to_string()).unwrap();
    let older = show(false).await;
    assert!(older.status.code() == Some(1) && text(&older).contains("plan again"), "{older:?}");
}

/// OPS-19: `apply` shows the plan and applies it only after a yes; a plan in a file is applied as
/// it was looked at, or not at all; the exit code of `plan` says whether there is anything to do.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_apply_asks() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    let of = |verb: &str| asking_deploy(verb, &sim, dir.path(), &small);
    for (answer, code) in [("", 2), ("no\n", 1)] {
        let refused = run_with_answer(of("apply"), answer).await;
        let told = text(&refused);
        assert_eq!(refused.status.code(), Some(code), "{told}");
        assert!(told.contains("+ role lead") && told.contains("Nothing was applied"), "{told}");
    }
    let mut plan = of("plan");
    plan.args(["--detailed-exitcode", "--out", "small.plan"]);
    assert_eq!(run(plan).await.status.code(), Some(2));
    assert_eq!(sim.stats().all.writes, 0);
    // 2 means changes, so no failure is 2.
    let mut missing = deploy("plan", &sim, dir.path(), Path::new("missing.yaml"));
    missing.arg("--detailed-exitcode");
    assert_eq!(run(missing).await.status.code(), Some(1));
    // A plan knows where it was made, and is applied there and nowhere else.
    let mut elsewhere = tidegate();
    elsewhere.args(["deploy", "apply", "small.plan", "--base-url", "http://127.0.0.1:1/api/v10"]);
    elsewhere.current_dir(dir.path()).env("DISCORD_TOKEN", TOKEN);
    let elsewhere = run(elsewhere).await;
    assert!(elsewhere.status.code() == Some(2) && text(&elsewhere).contains("--base-url"), "{elsewhere:?}");
    let mut stored = of("plan");
    stored.args(["--store", "file:other", "--out", "other.plan"]);
    let stored = text(&run(stored).await);
    assert!(stored.contains("`tidegate deploy apply other.plan`"), "{stored}");
    let mut misplaced = tidegate();
    misplaced.args(["deploy", "apply", "other.plan", "--yes", "--store", "file:third"]);
    misplaced.current_dir(dir.path()).env("DISCORD_TOKEN", TOKEN);
    let misplaced = run(misplaced).await;
    assert_eq!(misplaced.status.code(), Some(2), "{misplaced:?}");
    assert!(text(&misplaced).contains("was made with --store file:other"), "{misplaced:?}");
    let control = Caller::of(&format!("http://{}", sim.addr()));
    let path = format!("/_sim/hand/guilds/{GUILD}/roles");
    let agent = json!({ "name": "〚SSO〛 Helper 〔agent〕" });
    control.call(Method::POST, &path, &[], Some(&agent)).await.unwrap();
    let apply_file = || {
        let mut command = tidegate();
        command.args(["deploy", "apply", "small.plan", "--yes"]).current_dir(dir.path());
        command.env("DISCORD_TOKEN", TOKEN);
        run(command)
    };
    let changed = apply_file().await;
    assert_eq!(changed.status.code(), Some(1), "{}", text(&changed));
    let mut status = tidegate();
    status.args(["deploy", "status", "--guild", GUILD]).current_dir(dir.path());
    let status = run(status).await;
    assert!(text(&status).contains("No deployment of guild"), "a refused plan is none: {status:?}");
    assert!(text(&changed).contains("The guild has changed since the plan was made"), "{}", text(&changed));
    let mut again = of("plan");
    again.args(["--out", "small.plan"]);
    assert!(run(again).await.status.success());
    let applied = apply_file().await;
    assert!(text(&applied).contains("13 created, 1 updated"), "{}", text(&applied));
    let agreed = run_with_answer(of("apply"), "yes\n").await;
    assert!(agreed.status.success() && text(&agreed).contains("nothing to do"), "{}", text(&agreed));
    let mut plan = of("plan");
    plan.arg("--detailed-exitcode");
    assert_eq!(run(plan).await.status.code(), Some(0));
    // Even a script that reads only JSON is shown what it removes.
    let less = dir.path().join("less.yaml");
    let text_of = std::fs::read_to_string(&small).unwrap();
    std::fs::write(&less, text_of.replace("key: guest", "key: visitor")).unwrap();
    let mut prune = deploy("apply", &sim, dir.path(), &less);
    prune.args(["--prune", "--json"]);
    let pruned = run(prune).await;
    assert_eq!((&read(&pruned)["removed"], &read(&pruned)["created"]), (&1.into(), &1.into()));
    let shown = String::from_utf8_lossy(&pruned.stderr).into_owned();
    assert!(shown.contains("- role guest (") && !shown.contains("+ role visitor"), "{shown}");
}

/// OPS-10, OPS-19: for scripts, a failure has a code, the steps that failed and were not tried, and
/// the deployment; a plan with conflicts is kept in no file, and a wrong address is named as such.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_failures_are_for_scripts_too() {
    let mut options = DiscordSimOptions::default();
    options.quirks.refused_types = vec![4];
    let (sim, dir, small) = (start_wide_sim(options).await, TempDir::new().unwrap(), example("small.yaml"));
    let mut apply = deploy("apply", &sim, dir.path(), &small);
    apply.arg("--json");
    let failed = run(apply).await;
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    let error: Value = serde_json::from_str(said.trim()).unwrap_or_else(|_| panic!("{said}"));
    let (error, detail) = (&error["error"], &error["error"]["detail"]);
    assert_eq!((failed.status.code(), &error["code"]), (Some(1), &"TG0027".into()), "{error}");
    let first = &detail["failed"][0];
    assert_eq!((&first["kind"], &first["action"]), (&"category".into(), &"create".into()), "{error}");
    assert_eq!((&first["route"], &first["status"]), (&"POST /guilds/{guild}/channels".into(), &400.into()));
    assert!(
        detail["not_tried"].as_array().unwrap().len() >= 8 && detail["deployment"].is_string(),
        "{error}"
    );
    let control = Caller::of(&format!("http://{}", sim.addr()));
    for _ in 0..2 {
        let twin = json!({ "name": "〚SSO〛 Twin 〔lead〕" });
        let path = format!("/_sim/hand/guilds/{GUILD}/roles");
        control.call(Method::POST, &path, &[], Some(&twin)).await.unwrap();
    }
    let mut plan = deploy("plan", &sim, dir.path(), &small);
    plan.args(["--store", "file:fresh", "--out", "conflict.plan"]);
    let conflict = run(plan).await;
    assert!(conflict.status.code() == Some(1) && text(&conflict).contains("! the key lead is on several"));
    assert!(!dir.path().join("conflict.plan").exists());
    let mut wrong = tidegate();
    wrong.args(["deploy", "plan", "--guild", GUILD, "--base-url", "notaurl", "--template"]).arg(&small);
    let wrong = run({
        wrong.current_dir(dir.path()).env("DISCORD_TOKEN", TOKEN);
        wrong
    })
    .await;
    assert!(
        wrong.status.code() == Some(2) && text(&wrong).contains("--base-url cannot be used"),
        "{wrong:?}"
    );
}

/// OPS-14, OPS-23, LIM-12: through 5 % of 5xx, 2 % of cut answers and a global 429 of 30 seconds
/// the guild comes out right.
#[tokio::test(flavor = "multi_thread")]
async fn ops_14_a_bad_day_ends_right() {
    let options =
        DiscordSimOptions { fail_rate: 0.05, cut_rate: 0.02, seed: 11, ..DiscordSimOptions::default() };
    let (sim, dir, small) = (start_wide_sim(options).await, TempDir::new().unwrap(), example("small.yaml"));
    let applying = tokio::spawn(run(deploy("apply", &sim, dir.path(), &small)));
    until("the first writes", || sim.stats().all.writes >= 3).await;
    let control = Caller::of(&format!("http://{}", sim.addr()));
    control.call(Method::POST, "/_sim/global", &[], Some(&json!({ "for_ms": 30_000 }))).await.unwrap();
    let applied = applying.await.unwrap();
    assert!(applied.status.success(), "{}", text(&applied));
    let stats = sim.stats();
    assert_eq!(stats.all.duplicates, 0, "{:?}", stats.duplicates_by_key);
    assert!(stats.all.throttled <= 2, "whoever is told waits, and so do all others: {stats:?}");
    let mut plan = deploy("plan", &sim, dir.path(), &small);
    plan.arg("--json");
    let plan = read(&run(plan).await);
    assert_eq!(plan["estimate"]["calls"], 0, "{plan}");
}

/// OPS-15, OPS-8: killed in the middle of a call whose object was made, the same command goes on
/// with the same deployment.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_a_killed_command_is_gone_on_with() {
    let (sim, dir, small) =
        (start_wide_sim(DiscordSimOptions::default()).await, TempDir::new().unwrap(), example("small.yaml"));
    let control = Caller::of(&format!("http://{}", sim.addr()));
    let stop = json!({ "write": 6, "when": "after" });
    control.call(Method::POST, "/_sim/stop", &[], Some(&stop)).await.unwrap();
    let mut child = deploy("apply", &sim, dir.path(), &small).spawn().unwrap();
    for _ in 0..3_000 {
        if control.get("/_sim/stop").await.contains("\"reached\":true") {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    control.call(Method::DELETE, "/_sim/stop", &[], None).await.unwrap();
    let mut again = deploy("apply", &sim, dir.path(), &small);
    again.arg("--json");
    let report = read(&run(again).await);
    assert_eq!(
        (&report["resumed"], &report["created"], &report["adopted"]),
        (&true.into(), &8.into(), &1.into()),
        "{report}"
    );
    assert_eq!((sim.stats().all.writes, sim.stats().all.duplicates), (14, 0));
}

/// OPS-15, OPS-19: a server that forgets overwrites and has no orders, and a command that is killed
/// again and again, in the middle of calls: the last one says what is missing, nothing is there
/// twice, and further runs write no more than they must.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_a_killed_command_meets_a_strange_server() {
    let mut options = DiscordSimOptions { latency: Duration::from_millis(5), ..DiscordSimOptions::default() };
    (options.quirks.forget_overwrites, options.quirks.no_orders) = (true, true);
    let (sim, dir, small) = (start_wide_sim(options).await, TempDir::new().unwrap(), example("small.yaml"));
    for writes in [2, 5, 9, 13] {
        let mut child = deploy("apply", &sim, dir.path(), &small)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the next writes", || sim.stats().all.writes >= writes).await;
        // SIGKILL: it can say and do nothing more.
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ended = run(deploy("apply", &sim, dir.path(), &small)).await;
    let told = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("resuming deployment") && told.contains("did not stick: overwrites is"), "{told}");
    let stats = sim.stats();
    assert_eq!(stats.all.duplicates, 0, "{:?}", stats.duplicates_by_key);
    assert_eq!((stats.all.objects["channels"], stats.all.objects["messages"]), (8, 2), "{stats:?}");
}

/// OPS-19: two commands at once on one Redis: one does it, the other waits or is refused in so many
/// words.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_two_commands_at_once_make_no_duplicate() {
    let options = DiscordSimOptions { latency: Duration::from_millis(40), ..DiscordSimOptions::default() };
    let (sim, dir, small) = (start_wide_sim(options).await, TempDir::new().unwrap(), example("small.yaml"));
    let server = RedisServer::start();
    let of = || {
        let mut command = deploy("apply", &sim, dir.path(), &small);
        command.args(["--store", &server.url()]);
        run(command)
    };
    let (one, other) = tokio::join!(of(), of());
    assert!(one.status.success() || other.status.success(), "{}\n{}", text(&one), text(&other));
    for refused in [&one, &other].into_iter().filter(|output| !output.status.success()) {
        assert!(text(refused).contains("--server"), "{}", text(refused));
    }
    assert_eq!((sim.stats().all.writes, sim.stats().all.duplicates), (14, 0));
}
