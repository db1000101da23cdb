import type { AuditActor } from "./audit.ts";
import type { CreateEndpoint, Endpoint, EndpointDelivery, EndpointType, UpdateEndpoint } from "./endpoint.ts";
import type { Root } from "./root.ts";

/**
 * One secret of an endpoint, sealed. `until`: one that was rolled signs no longer, in milliseconds since the epoch.
 * `version` names the request that made it.
 */
export type EndpointSecret = { sealed: string; until?: number | undefined; version?: string | undefined };

/** An endpoint as its own object has it. `rests`: nothing is sent. */
export type EndpointConfig = Pick<Endpoint, "id" | "url" | "types" | "batch"> & {
  workspaceId: string;
  secrets: EndpointSecret[];
  rests?: "disabled" | "suspended" | undefined;
  version: number;
};

/** An endpoint as a space knows it. `isNamed`: it is told of what is said there while the space is confidential. */
export type FollowingEndpoint = { id: string; types: EndpointType[]; isNamed: boolean };

/** Those that follow a space. Of two lists the one of the higher version is newer. */
export type FollowingEndpoints = { version: number; endpoints: FollowingEndpoint[] };

/**
 * A source, a space or the workspace, has events up to `cursor`, of which the endpoint was told up to `after`. `changed`:
 * words that were said there were edited or deleted. `over`: there is no such space any more.
 */
export type EndpointNews = {
  workspaceId: string;
  sourceId: string;
  after: number;
  cursor: number;
  changed?: boolean | undefined;
  over?: boolean | undefined;
};

/**
 * An event as its source tells it now. `id`: the same whenever it is told. `data`: JSON. `root`: what a message came of, where its
 * server may know it; it has a timestamp then.
 */
export type ToldEvent = {
  id: string;
  seq: number;
  type: string;
  timestamp?: string | undefined;
  data: string;
  root?: Root | undefined;
};

/** Events after a place, in order, and the place up to which that is all of them. */
export type ToldEvents = { events: ToldEvent[]; cursor: number };

/** What an endpoint asks its sources: all after a place that is of these types. */
export type AskedEvents = { endpointId: string; after: number; types: EndpointType[] };

/** The RPC of an endpoint's object, as `rpc.ts` says. */
export interface EndpointMethods {
  /** From its workspace, which makes it by that. An older version changes nothing. */
  configure(config: EndpointConfig): null;
  /** From its workspace: it is no more. */
  remove(workspaceId: string): null;
  /** From its workspace: an erasure forgets what servers answered. Answers how many answers that were. */
  forgetAnswers(workspaceId: string): number;
  /** From a source, in its order. What was told already is ignored. */
  deliver(news: EndpointNews): { cursor: number };
  /** Newest first. */
  deliveries(
    workspaceId: string,
    page: { limit: number; cursor?: string | undefined },
  ): { items: EndpointDelivery[]; nextCursor: string | null };
  /** Sends again what was sent since then. Answers of how many sources. */
  redeliver(workspaceId: string, from: number): number;
}

export type NewEndpoint = CreateEndpoint & { id: string; sealed: string };
/** The same `version` again changes nothing. */
export type NextSecret = { sealed: string; version: string; overlapMs: number };
type SealedEndpoint = { endpoint: Endpoint; sealed: string };

/** A space's methods about the endpoints that follow it. */
export interface EndpointSourceMethods {
  /** From the workspace: these follow it, and no others. */
  setEndpoints(workspaceId: string, following: FollowingEndpoints): null;
  /** For an endpoint that follows it; `not_found` for any other. */
  toldTo(workspaceId: string, asked: AskedEvents): ToldEvents;
}

/** A workspace's methods about its endpoints. */
export interface EndpointRegistryMethods {
  /** The same again is the same endpoint. Answers its newest secret too, sealed, as `rollEndpoint` does. */
  addEndpoint(endpoint: NewEndpoint, by: AuditActor): SealedEndpoint;
  /** Oldest first. */
  endpoints(): Endpoint[];
  updateEndpoint(id: string, changes: UpdateEndpoint, by: AuditActor): Endpoint;
  rollEndpoint(id: string, next: NextSecret, by: AuditActor): SealedEndpoint;
  deleteEndpoint(id: string, by: AuditActor): null;
  /** From the endpoint: its server took nothing for days. Of an older version, nothing changes. */
  endpointFailed(id: string, version: number, detail: string): null;
  /** For an endpoint: what happened in the workspace. */
  toldTo(workspaceId: string, asked: AskedEvents): ToldEvents;
}
