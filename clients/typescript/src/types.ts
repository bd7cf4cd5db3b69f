/** What the server takes and returns, in the names of this language. */

/** The state of an operation; the last four are where waiting ends. */
export type State = "queued" | "waiting" | "running" | "unknown" | "succeeded" | "failed" | "canceled";

/** One HTTP request below the base URL of its upstream. */
export interface HttpRequest {
  method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  /** With its query; starts with a slash. */
  path: string;
  headers?: Record<string, string>;
  /** Any JSON; a string is sent as that text. */
  body?: unknown;
}

/** An operation to submit: a call to an upstream, or work for a remote worker. */
export type Submission = CallSubmission | WorkSubmission;

/** A call to an upstream. */
export interface CallSubmission extends SubmissionOptions {
  /** The name of the upstream in the server's configuration. */
  upstream: string;
  /** The request. Its shape depends on the kind. */
  request: HttpRequest | Record<string, unknown>;
  /** `http` by default. */
  kind?: string;
}

/** Work for a remote worker. */
export interface WorkSubmission extends SubmissionOptions {
  /** A kind that the server leaves to remote workers. */
  kind: string;
  /** Any JSON, for the worker. */
  payload: unknown;
}

/** What all submissions have. */
export interface SubmissionOptions {
  /** The group within which operations run in order. */
  group: string;
  /**
   * Two submissions with one key are one operation. Take it from your own records (`order-1001`)
   * where the process may die and submit again; without one the client makes one for each call, so
   * that its own retries are safe.
   */
  dedupeKey?: string;
  /** What it costs of the upstream's limits, by their names. */
  cost?: Record<string, number>;
  maxAttempts?: number;
  /** It fails unless it can start within this time. */
  deadlineMs?: number;
  /** It fails unless it can start before this time. Instead of `deadlineMs`. */
  deadlineAt?: Date;
  delayMs?: number;
  priority?: 0 | 1 | 2 | 3 | 4;
  /** What follows when the request was sent and no response came. */
  onUnknown?: "repeat" | "ask" | "reconcile";
  /** What the group does when this operation has failed for good. */
  onFailure?: "skip" | "hold";
  deploymentId?: string;
  /** How the job ends that the request submits, if the service answers before it is done. */
  completion?: Completion;
}

/** Values by JSON pointer, such as `{ "/status": ["succeeded"] }`: all must have one of theirs. */
export type Conditions = Record<string, unknown[]>;

/** How a job ends: the service calls back, or is polled, or both. The names are those of the wire. */
export interface Completion {
  /** `true`, or where the service is told the URL and the token: a header, or a JSON pointer. */
  callback?: boolean | { url: string; token?: string; done?: Conditions; failed?: Conditions };
  /** `{/id}` in the path is the value at that pointer of the response to the submission. */
  poll?: { path: string; every_s?: number; done: Conditions; failed?: Conditions };
  timeout_s?: number;
}

/** An accepted operation. */
export interface Accepted {
  id: string;
  state: State;
  /** Whether your `dedupeKey` was used before: then this is the first operation with it. */
  deduplicated: boolean;
}

/** The stored part of the upstream's response, or what a worker returned. Of kinds that are more than
 * one HTTP call, such as generations, `body` is the whole result, and there are no `headers`. */
export interface Result<Body = unknown> {
  /** `null` where no response had one: also where a completion reported that a job failed. */
  status: number | null;
  headers: Record<string, string>;
  /** JSON if its content type says so, otherwise text, and `{ base64 }` for what is not UTF-8. */
  body: Body;
  /** `false` if the content type says JSON and the body is stored in another form. */
  json?: boolean;
  /** The body was not stored, and `body` says why. */
  truncated?: boolean;
}

/** The last failure of an operation. */
export interface Fault {
  class: "validation" | "forbidden" | "not_found" | "rate_limited" | "transient" | "conflict";
  message: string;
  /** Whether this attempt or an earlier one may have taken effect. */
  mayHaveHappened?: boolean;
}

/** A request with its secrets masked. Query, headers and body are not in lists. */
export interface ShownRequest {
  method?: string;
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** The length of the body; `bodyTruncated` if only its beginning is shown. */
  bodyBytes?: number;
  bodyTruncated?: boolean;
}

/** An operation. */
export interface Operation<Body = unknown> {
  id: string;
  state: State;
  kind: string;
  group: string;
  /** Attempts so far. */
  attempt: number;
  createdAt: Date;
  finishedAt: Date | null;
  /** The response. Not in lists, and `null` where an operator recorded the outcome. */
  result: Result<Body> | null;
  fault: Fault | null;
  upstream?: string;
  /** What it asks the upstream for, without secrets. */
  request?: ShownRequest;
  /** The id by which the upstream knows its job, if the operation did not succeed. */
  jobId?: string;
  dedupeKey?: string;
  requestId?: string;
  deploymentId?: string;
  deadlineAt?: Date;
  maxAttempts?: number;
}

/** The rest of a command of an operator. */
export interface CommandOptions {
  /** Why, for the audit log. */
  reason?: string;
}

/** The rest of a completion. */
export interface CompletionOptions {
  /** The result of a job that succeeded: any JSON. */
  result?: unknown;
  /** Why it did not. */
  fault?: { message: string; class?: Fault["class"] };
  /** The completion token of the attempt, which is all that its holder needs. */
  token?: string;
}

/** A completion. */
export interface Completed<Body = unknown> {
  /** Whether it ended the attempt: the first one does. */
  applied: boolean;
  operation: Operation<Body>;
}

/** A group. */
export interface Group {
  name: string;
  /** `paused`, `held`, `idle`, or the state of its first operation. */
  state: string;
  /** How many operations are in it. */
  depth: number;
}

/** Which operations to list. */
export interface OperationFilter {
  group?: string;
  state?: State | State[];
  kind?: string;
  upstream?: string;
  dedupeKey?: string;
  createdAfter?: Date;
  createdBefore?: Date;
  /** Those whose call may have taken effect although they failed, or those of which that is excluded. */
  mayHaveHappened?: boolean;
}

/** What an operation waits for. */
export interface Why {
  waitingFor:
    | "running"
    | "turn"
    | "worker"
    | "time"
    | "bucket"
    | "lease"
    | "breaker"
    | "alternatives"
    | "completion"
    | "person"
    | "nothing";
  name: string | null;
  until: Date | null;
  /** When it is expected to start: an estimate. */
  startsAt: Date | null;
  /** The operation before it. */
  behind: string | null;
  /** The same as a sentence. */
  because: string;
}
