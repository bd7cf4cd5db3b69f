/** Entities that other modules own: read, answered for by a URL, and published. */

import type { Transport } from "./transport.js";
import { fromWire, segment, toWire } from "./wire.js";

/** How much is asked for: whether it exists, the named fields, or everything. */
export type HydrationMode = "existence" | "partial" | "full";

export interface EntityOptions {
  /** Only these fields. */
  fields?: string[];
  /** `partial` with fields, otherwise `full`. */
  mode?: HydrationMode;
  /** How long to wait for the owner in total; by default as the server is configured. */
  waitMs?: number;
  /** The oldest copy that will do; by default any. */
  maxAgeMs?: number;
  /** What to do without an answer in time: fail, keep asking, or use the stale copy. */
  onMiss?: "fail-fast" | "defer" | "degrade";
  /** Whose entity it is; `default` by default. */
  tenant?: string;
  signal?: AbortSignal;
}

/** An entity, or why there is none. */
export interface Entity<Data = Record<string, unknown>> {
  entityType: string;
  entityId: string;
  /** `unavailable` is temporary and says nothing about the entity. */
  state: "found" | "not-found" | "deferred" | "unavailable";
  /** The fields that were asked for, if it was found. */
  data?: Data;
  /** Grows with every change, if its owner counts them. */
  version?: number;
  /** When its owner looked. */
  asOf?: Date;
  /** Who answered. */
  sourceModule?: string;
  /** Whether the data is older, or less, than was asked for. */
  stale?: boolean;
  /** Why it was not found or is unavailable. */
  reason?: string;
}

/** What all events about an entity have. */
interface EntityEventFields {
  entityType: string;
  entityId: string;
  /** Who says so. */
  sourceModule: string;
  version?: number;
  /** When that was true. */
  asOf?: Date;
  tenant?: string;
  /** That of the question, if this is an answer. */
  correlationId?: string;
}

/** An entity was created or changed. */
export interface EntityUpdate extends EntityEventFields {
  data: Record<string, unknown>;
  /** How much `data` is: everything, unless it says otherwise. */
  hydrationMode?: HydrationMode;
  /** Those that `data` has, with the mode `partial`. */
  fields?: string[];
}

/** There is no such entity, or not for everyone. */
export interface EntityAbsence extends EntityEventFields {
  reason: "deleted_or_never_existed" | "inaccessible";
}

/** Who answers for a type: a registered URL, or an upstream by configuration. */
export interface Source {
  entityType: string;
  url?: string;
  upstream?: string;
  path?: string;
}

export class Entities {
  constructor(private readonly transport: Transport) {}

  /** Reads an entity: from the server's copy, or from its owner, who is asked once for all. */
  async get<Data = Record<string, unknown>>(
    entityType: string,
    entityId: string,
    options: EntityOptions = {},
  ): Promise<Entity<Data>> {
    const { fields, signal, waitMs = 0, ...rest } = options;
    const path = `/v1/entities/${segment(entityType)}/${segment(entityId)}`;
    const expects = ["entity_id", "state"];
    const query = { ...toWire(rest), wait_ms: options.waitMs, fields: fields?.join(",") };
    const found = await this.transport.send<object>({ method: "GET", path, query, waitMs, signal, isAnswer, expects });
    return fromWire<Entity<Data>>(found);
  }

  /** Removes the server's copy, if something wrong was published; the next reader asks. */
  async forget(entityType: string, entityId: string, options: { tenant?: string } = {}): Promise<boolean> {
    const path = `/v1/entities/${segment(entityType)}/${segment(entityId)}`;
    return this.removed(path, { ...options });
  }

  /**
   * Registers the URL that answers for a type. It gets a POST with the envelope of `entity/unknown`
   * and answers 200 with that of `entity/updated` or `entity/not-found`, or 202 and publishes later.
   */
  async register(entityType: string, url: string): Promise<Source> {
    const path = `/v1/sources/${segment(entityType)}`;
    return fromWire<Source>(await this.transport.send<object>({ method: "PUT", path, body: { url }, expects: ["entity_type"] }));
  }

  /** Removes the source of a type; `false` when there was none. */
  async unregister(entityType: string): Promise<boolean> {
    return this.removed(`/v1/sources/${segment(entityType)}`);
  }

  /** All sources of this node. */
  async sources(): Promise<Source[]> {
    const { sources } = await this.transport.send<{ sources: object[] }>({
      method: "GET",
      path: "/v1/sources",
      expects: ["sources"],
    });
    return sources.map((source) => fromWire<Source>(source));
  }

  /** Publishes an entity after a change, or as an answer. `false` when no one received it. */
  publishUpdated(update: EntityUpdate): Promise<boolean> {
    return this.publish("entity/updated", update);
  }

  /** Publishes that there is no such entity. `false` when no one received it. */
  publishNotFound(absence: EntityAbsence): Promise<boolean> {
    return this.publish("entity/not-found", absence);
  }

  private async publish(event: string, fields: EntityUpdate | EntityAbsence): Promise<boolean> {
    const { tenant, correlationId, ...payload } = fields;
    const body = { event, tenant, correlation_id: correlationId, payload: toWire(payload) };
    const path = "/v1/entities/events";
    // Twice is the same as once.
    const expects = ["received"];
    const { received } = await this.transport.send<{ received: boolean }>({ method: "POST", path, body, expects });
    return received;
  }

  private async removed(path: string, query: Record<string, string | undefined> = {}): Promise<boolean> {
    const expects = ["removed"];
    const { removed } = await this.transport.send<{ removed: boolean }>({ method: "DELETE", path, query, expects });
    return removed;
  }
}

/** 404 and 503 may be answers about the entity, which are not retried. */
function isAnswer(body: unknown): boolean {
  return typeof body === "object" && body !== null && "state" in body && "entity_id" in body;
}
