//! The scripts that run on the server, and how they are called: by their hash, and in full when the
//! server does not know them. A server may forget them at any time.

use std::sync::LazyLock;

use redis::{Arg, Cmd, ErrorKind, ServerErrorKind, ToRedisArgs, Value, cmd};

use crate::connection::{CommandFailure, SharedConnection};

/// A script and the hash by which a server knows it.
pub(crate) struct Script {
    code: LazyLock<String>,
    hash: LazyLock<String>,
}

impl Script {
    /// The command that loads the script into a server.
    pub(crate) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(&*self.code);
        load
    }
}

/// Scripts from their files; shared code comes first.
macro_rules! scripts {
    ($($name:ident = $($file:literal),+;)+) => {
        $(pub(crate) static $name: Script = {
            const CODE: &str = concat!($(include_str!(concat!("scripts/", $file, ".lua"))),+);
            Script {
                code: LazyLock::new(|| without_comments(CODE)),
                hash: LazyLock::new(|| redis::Script::new(&$name.code).get_hash().to_owned()),
            }
        };)+
    };
}

scripts! {
    FORMAT = "format";
    OWN = "clock", "own";
    RENEW = "clock", "renew";
    OWNER = "clock", "owner";
    RELEASE = "release";
    APPEND = "clock", "append";
    OUTLINE = "outline";
    SWEEP = "clock", "sweep";
    SWEPT = "swept";
    TRODDEN = "clock", "trodden";
    BOOKED = "booked";
    SNAPSHOT_BEGIN = "snapshot_begin";
    SNAPSHOT_END = "snapshot_end";
    RECORD_COMPLETE = "record_complete";
    RECORD_SWAP = "record_swap";
    RECORD_LIST = "clock", "record_list";
    LEASE_ACQUIRE = "clock", "lease_acquire";
    LEASE_KEEP = "clock", "lease_keep";
    WINDOW_OPEN = "clock", "window_open";
    BUCKET_RESERVE = "bucket_quick", "clock", "drip", "bucket_reserve";
    BUCKET_SETTLE = "clock", "drip", "bucket_settle";
    BUCKET_OBSERVE = "clock", "bucket_observe";
    NODE_REGISTER = "clock", "node_register";
    NODE_LIST = "clock", "node_list";
    JOURNAL_KEEP = "fence", "journal_keep";
    JOURNAL_WRITE = "fence", "journal_write";
    JOURNAL_LIST = "journal_list";
    JOURNAL_EVENTS = "journal_events";
    AUDIT_ADD = "audit_add";
}

/// A call of a script: its keys, then its arguments.
pub(crate) struct ScriptCall<'a> {
    script: &'a Script,
    keys: Vec<String>,
    /// A command without a name: all arguments are in one buffer.
    args: Cmd,
}

impl<'a> ScriptCall<'a> {
    pub(crate) fn new<const N: usize>(script: &'a Script, keys: [String; N]) -> Self {
        Self { script, keys: keys.into(), args: Cmd::new() }
    }

    /// Adds a key.
    pub(crate) fn add_key(&mut self, key: String) {
        self.keys.push(key);
    }

    /// Adds an argument.
    pub(crate) fn arg(&mut self, what: impl ToRedisArgs) -> &mut Self {
        self.args.arg(what);
        self
    }

    /// Adds an argument, for chaining.
    pub(crate) fn with_arg(mut self, what: impl ToRedisArgs) -> Self {
        self.arg(what);
        self
    }

    /// The call by hash, which is short.
    pub(crate) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The call in full, for a server that does not know the script.
    pub(crate) fn in_full(&self) -> Cmd {
        self.command("EVAL", &self.script.code)
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = cmd(verb);
        command.arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for arg in self.args.args_iter() {
            if let Arg::Simple(arg) = arg {
                command.arg(arg);
            }
        }
        command
    }

    /// Calls the script, in full if necessary.
    pub(crate) async fn send(&self, link: &SharedConnection) -> Result<Value, CommandFailure> {
        match link.send(&self.by_hash()).await {
            Err(failed) if is_unknown(&failed) => link.send(&self.in_full()).await,
            answer => answer,
        }
    }
}

/// The code without indentation and lines of comments: an append sends it each time, and the server
/// hashes all of it.
fn without_comments(code: &str) -> String {
    let lines = code.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns whether the server replied that it does not know the script, and so did nothing.
fn is_unknown(failed: &CommandFailure) -> bool {
    failed.cause.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
