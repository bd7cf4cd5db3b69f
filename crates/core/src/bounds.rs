//! Every size, count and time that Tidegate bounds, in one place. Checked where data enters; code
//! inside may rely on them.

use std::time::Duration;

/// Longest group name, in bytes.
pub const GROUP_LEN_MAX: usize = 255;
/// Longest kind name, in bytes.
pub const KIND_LEN_MAX: usize = 64;
/// Longest name of a limit, in bytes.
pub const LIMIT_LEN_MAX: usize = 255;
/// Longest dedupe key, in bytes.
pub const DEDUPE_KEY_LEN_MAX: usize = 512;
/// Longest `request_id` or `deployment_id`, in bytes.
pub const TRACE_LEN_MAX: usize = 255;
/// Longest reason or author of a pause, in bytes.
pub const NOTE_LEN_MAX: usize = 500;
/// Longest message kept of a fault, in bytes; longer ones are truncated.
pub const FAULT_MESSAGE_LEN_MAX: usize = 1_000;
/// Largest payload of one operation, in bytes.
pub const PAYLOAD_LEN_MAX: usize = 1024 * 1024;
/// Largest response kept as a result, in bytes.
pub const RESULT_LEN_MAX: usize = 8 * 1024 * 1024;
/// Longest time that a request may wait for the end of an operation, in milliseconds.
pub const WAIT_MS_MAX: u64 = 60_000;
/// Most items of one page of a list.
pub const PAGE_ITEMS_MAX: u64 = 200;
/// Most ended operations that a store looks at for one page of a list.
pub const LIST_SCANNED_MAX: usize = 50_000;
/// Most problems of one request that are reported.
pub const PROBLEMS_MAX: usize = 20;
/// How much of a body that is too large is read and discarded, so that the caller receives the
/// error.
pub const DISCARDED_LEN_MAX: usize = 64 * 1024 * 1024;
/// Largest response of a partition that is merged with those of others, in bytes.
pub const PARTITION_RESPONSE_LEN_MAX: usize = 32 * 1024 * 1024;
/// How long the archive may take to respond.
pub const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait that an upstream may ask for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Longest name of an upstream or of one of its limits, in bytes.
pub const UPSTREAM_NAME_LEN_MAX: usize = 64;
/// Most operations in one batch of acceptances.
pub const BATCH_ACCEPT_MAX: usize = 1_000;
/// Most operations that one take of a remote worker gets, and most claims in one of its reports.
pub const WORK_BATCH_MAX: usize = 1_000;
/// Longest payloads that one take of remote workers gets in all, in bytes; one always fits.
pub const WORK_PAYLOADS_LEN_MAX: usize = 16 * 1024 * 1024;
/// Most callers of remote workers that are served in one step.
pub const WORK_CALLERS_MAX: usize = 32;
/// Longest call shape that a cost is recorded under, in bytes; longer ones are truncated.
pub const SHAPE_LEN_MAX: usize = 255;
/// Most call costs that one append keeps.
pub const COSTS_MAX: usize = 4_096;
/// Longest id by which an upstream knows a job, in bytes; longer ones are truncated.
pub const EXTERNAL_ID_LEN_MAX: usize = 500;
/// Largest memo that an executor keeps with an attempt, in bytes.
pub const MEMO_LEN_MAX: usize = 16 * 1024;
/// Most charges on one operation.
pub const CHARGES_MAX: usize = 8;
/// Most alternatives of one operation.
pub const ALTERNATIVES_MAX: usize = 16;
/// How long an operation waits whose executor is not configured for it.
pub const UNAVAILABLE_WAIT: Duration = Duration::from_secs(5);
/// Most limits one partition keeps.
pub const LIMITS_MAX: usize = 100_000;
/// Opened limits of a partition that are kept although no operation uses them.
pub const OPENED_KEPT: usize = 10_000;
/// Most attempts an operation may ask for.
pub const ATTEMPTS_MAX: u16 = 1_000;
/// Default number of attempts.
pub const ATTEMPTS_DEFAULT: u16 = 8;
/// Farthest deadline or delay that may be requested.
pub const HORIZON_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// How long a dedupe key is remembered by default.
pub const DEDUPE_WINDOW_DEFAULT: Duration = Duration::from_secs(24 * 3_600);
/// How long a worker may hold an operation without renewing its lease.
pub const LEASE_TTL_DEFAULT: Duration = Duration::from_secs(30);
/// How long a node may own a partition without renewing its lease. Another node takes over when it
/// has expired.
pub const PARTITION_TTL_DEFAULT: Duration = Duration::from_secs(6);
/// Longest time an accepted job may take until its completion; then its outcome is unknown.
pub const AWAIT_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long an accepted job may take by default.
pub const AWAIT_DEFAULT: Duration = Duration::from_secs(3_600);
/// Longest time for which a job is still awaited after a cancel was requested; then its operation
/// is canceled.
pub const CANCEL_AWAIT_MAX: Duration = Duration::from_secs(300);
/// Shortest time between two polls of the same job.
pub const POLL_AFTER_MIN: Duration = Duration::from_millis(100);
/// Highest priority; 0 is the default.
pub const PRIORITY_MAX: u8 = 4;
/// Largest capacity or refill, in whole tokens: it still fits in 64 bits as micro-tokens.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;
/// Longest name of a stand-alone bucket or a lease, in bytes.
pub const NAME_LEN_MAX: usize = 255;
/// Most stand-alone buckets taken from in one step.
pub const BUCKETS_MAX: usize = 8;
/// Longest time a named lease may be held without renewal: a day.
pub const NAMED_LEASE_TTL_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How many operations ahead are counted when a deadline is checked at acceptance.
pub const AHEAD_COUNTED_MAX: usize = 1_000;
/// How far back a position in a queue is counted.
pub const POSITION_COUNTED_MAX: usize = 10_000;
/// Most entries that one query scans in the owner of a partition, so that no one else waits long.
pub const QUERY_SCAN_MAX: usize = 20_000;
/// Most hints that wait for a slow listener; further ones are lost.
pub const HINTS_WAITING_MAX: usize = 256;
/// Most call costs that a store looks at for one report.
pub const COSTS_SCANNED_MAX: u32 = 500_000;
/// Ended deployments kept per scope; older ones are removed with their steps when another one
/// begins.
pub const DEPLOYMENTS_KEPT: usize = 100;
/// Events kept per deployment; older ones are dropped and counted. At least
/// [`JOURNAL_LINES_MAX`], so that one write never drops its own.
pub const DEPLOYMENT_EVENTS_KEPT: usize = 10_000;
/// Largest request of a deployment that is kept, in bytes.
pub const DEPLOYMENT_LEN_MAX: usize = 1024 * 1024;
/// Largest payload of a message on a bus, in bytes; a NATS server accepts no more by default.
pub const BUS_PAYLOAD_LEN_MAX: usize = 1024 * 1024;
/// Longest subject of a message, in encoded bytes.
pub const SUBJECT_LEN_MAX: usize = 2_048;
/// Most tokens of a subject.
pub const SUBJECT_TOKENS_MAX: usize = 16;
/// Most messages that wait for a subscriber of a bus; further ones are lost and leave a gap.
pub const BUS_QUEUE_LEN_MAX: usize = 4_096;
/// Most bytes that wait for a subscriber of a bus.
pub const BUS_QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most steps, and most objects, written to the journal in one call.
pub const JOURNAL_LINES_MAX: usize = 10_000;
/// Longest name in a line of the journal, in bytes.
pub const JOURNAL_NAME_LEN_MAX: usize = 512;
/// Highest fence of a deployment: stores keep it as a signed number.
pub const JOURNAL_FENCE_MAX: u64 = i64::MAX.cast_unsigned();
/// Most reads of an embedded store at once.
pub const STORE_READS_MAX: usize = 4;
/// Longest tenant, in bytes.
pub const TENANT_LEN_MAX: usize = 255;
/// Longest type of an entity, in bytes.
pub const ENTITY_TYPE_LEN_MAX: usize = 64;
/// Longest id of an entity, in bytes.
pub const ENTITY_ID_LEN_MAX: usize = 255;
/// Longest correlation id of a question, in bytes.
pub const CORRELATION_LEN_MAX: usize = 255;
/// Longest name of a module that asks or answers, in bytes.
pub const MODULE_LEN_MAX: usize = 64;
/// Most fields that one question names.
pub const ENTITY_FIELDS_MAX: usize = 64;
/// Longest name of a field, in bytes.
pub const ENTITY_FIELD_LEN_MAX: usize = 128;
/// Most waiters of a hydration that are shown; all of them are counted.
pub const WAITERS_SHOWN: usize = 10;
/// Most hydrations in flight in one process, unanswered ones included.
pub const FLIGHTS_MAX: usize = 65_536;
/// Most callers that wait for hydrations in one process.
pub const WAITERS_MAX: usize = 65_536;
/// Most upgrades of one flight within its window: to what both want, then to everything.
pub const FLIGHT_UPGRADES_MAX: u8 = 2;
/// Most callers that wait for one entity.
pub const FLIGHT_WAITERS_MAX: usize = 16_384;
/// Most entities that are remembered as not found.
pub const NEGATIVES_MAX: usize = 100_000;
/// Most pieces of deferred work in one process.
pub const DEFERRED_MAX: usize = 10_000;
/// Most pieces of deferred work for one entity.
pub const DEFERRED_OF_ENTITY_MAX: usize = 100;
/// Most questions of one tenant in a second, by default.
pub const QUESTIONS_PER_S_DEFAULT: u32 = 10_000;
/// Most tenants whose questions are counted at once.
pub const HYDRATION_TENANTS_MAX: usize = 10_000;
/// How far the timestamp of a webhook may be from the receiver's clock.
pub const WEBHOOK_SKEW_MAX: Duration = Duration::from_secs(300);
/// Most bytes of a request's body that are shown to people.
pub const BODY_SHOWN_MAX: usize = 8 * 1024;
/// Largest file of a result that is stored, in bytes.
pub const RESULT_FILE_LEN_MAX: usize = 64 * 1024 * 1024;
/// Longest key of a stored file, in bytes.
pub const STORAGE_KEY_LEN_MAX: usize = 512;
/// Most commands of operators that a store keeps, of all nodes together.
pub const AUDIT_ENTRIES_KEPT: usize = 10_000;
/// How long a store keeps a command of an operator.
pub const AUDIT_RETENTION: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Longest text in an entry of the audit log, in bytes.
pub const AUDIT_TEXT_LEN_MAX: usize = 8 * 1024;

/// The number up to which a store counts idempotency records that it would have to scan.
pub const RECORDS_COUNTED_MAX: u32 = 100_000;
