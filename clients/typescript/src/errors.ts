/** The errors of this client. All of them are `TidegateError`s. */

import type { Operation } from "./types.js";

export class TidegateError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** One thing that is wrong with a request. */
export interface Problem {
  code: string;
  field: string | null;
  message: string;
}

/** The server refused the request. `message` has the code, and what is wrong this time. */
export class ApiError extends TidegateError {
  /** The HTTP status; 0 for a member of a batch. */
  readonly status: number;
  /** Stable, for programs: `TG0008`, or `IDEMPOTENCY_…`. */
  readonly code: string;
  /** The kind of problem, the same for every error of its code. */
  readonly title: string;
  /** The field or parameter that is wrong, as you spelled it on the wire. */
  readonly field: string | null;
  /** What else is known: `earliest`, `operation`, `candidates`, … */
  readonly detail: Record<string, unknown>;
  /** Everything that is wrong with the request; the first is this error. */
  readonly problems: Problem[];
  /** The page of its code on the server. */
  readonly link: string | null;

  constructor(status: number, body: unknown) {
    const { code, title, message, field, detail, problems, link } = readError(status, body);
    super(`${code}: ${message}`);
    this.status = status;
    this.code = code;
    this.title = title;
    this.field = field;
    this.detail = detail;
    this.problems = problems;
    this.link = link;
  }
}

/** No response came, however often it was tried. Whether the last try had an effect is unknown. */
export class NoResponseError extends TidegateError {}

/** An operation ended otherwise than by success. */
export class OperationError extends TidegateError {
  readonly operation: Operation;

  constructor(operation: Operation) {
    const cause = operation.fault ? `: ${operation.fault.message}` : "";
    super(`Operation ${operation.id} is ${operation.state}${cause}`);
    this.operation = operation;
  }
}

/** It failed for good; `operation.fault` says why. */
export class OperationFailedError extends OperationError {}

/** It was canceled. */
export class OperationCanceledError extends OperationError {}

/** The request was sent and no response came. It may have taken effect; an operator decides. */
export class OutcomeUnknownError extends OperationError {}

/** The operation is accepted and has not ended in time. It goes on: look again under its id. */
export class WaitTimeoutError extends TidegateError {
  /** `null` if not even its acceptance was heard of; then look for its `dedupeKey`. */
  readonly id: string | null;
  readonly dedupeKey: string | null;

  constructor(id: string | null, dedupeKey: string | null) {
    super(id ? `Operation ${id} has not ended in time.` : "The operation was not accepted in time.");
    this.id = id;
    this.dedupeKey = dedupeKey;
  }
}

/** The lease is not, or no longer, held. */
export class LeaseLostError extends TidegateError {
  readonly lease: string;

  constructor(lease: string, message: string) {
    super(message);
    this.lease = lease;
  }
}

type ErrorFields = Pick<ApiError, "code" | "title" | "message" | "field" | "detail" | "problems" | "link">;

/** Reads both shapes of an error: the server's own, and that of idempotency keys. */
function readError(status: number, body: unknown): ErrorFields {
  const outer = (typeof body === "object" ? body : null) as Record<string, unknown> | null;
  const error = outer?.["error"] as Partial<ErrorFields> | undefined;
  if (error?.code) {
    const { code, title = code, message = title, field = null, detail = {}, problems = [], link = null } = error;
    return { code, title, message, field, detail, problems, link };
  }
  const code = String(outer?.["error_code"] ?? `HTTP_${status}`);
  const stranger = `The server answered ${status}, and not as Tidegate does: is this its address?`;
  const message = String(outer?.["detail"] ?? stranger);
  return { code, title: code, message, field: null, detail: {}, problems: [], link: null };
}
