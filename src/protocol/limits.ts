import * as z from "zod";
import { component, strictComponent } from "./text.ts";
import type { UsageHeard, UsagePage, UsageReport, UsageRequest } from "./usage.ts";

/** How long a space may be made after its admission. What its workspace has not heard of by then is asked for. */
export const makingSpaceMs = 60_000;

const Limit = z.int().min(0).optional();

const limits = {
  maxAgents: Limit.meta({ description: "Agents" }),
  maxEntities: Limit.meta({ description: "People and services" }),
  maxSpaces: Limit.meta({ description: "Spaces that live, and those that are being made" }),
  maxStorageBytes: Limit.meta({ description: "Bytes that its agents, its spaces and the workspace itself store" }),
  maxTokensPerDay: Limit.meta({
    description: "Tokens that agents and spaces' routers are billed or have leased, a day (UTC)",
  }),
};

/** The limits that the operator sets a workspace. Where one is left out, only the deployment's own bounds hold. */
export const WorkspaceLimits = component("WorkspaceLimits", limits);
export type WorkspaceLimits = z.infer<typeof WorkspaceLimits>;
export type LimitName = keyof WorkspaceLimits;

export const limitNames = Object.keys(limits) as LimitName[];

export const SetLimits = strictComponent("SetLimits", {
  ...limits,
  force: z.boolean().default(false).meta({
    description: "Set them also where more is used: nothing is taken away, and what is new is refused",
  }),
});
export type SetLimits = z.infer<typeof SetLimits>;

const Used = z.int();

/** What a workspace uses now of each limit. */
export const WorkspaceUse = component("WorkspaceUse", {
  maxAgents: Used,
  maxEntities: Used,
  maxSpaces: Used,
  /** As agents and spaces told last, about a minute ago. */
  maxStorageBytes: Used.default(0),
  /** Agents lease none, and it is 0, where there is no such limit. */
  maxTokensPerDay: Used.default(0),
} satisfies Record<LimitName, z.ZodType>);
export type WorkspaceUse = z.infer<typeof WorkspaceUse>;

/** The limits, and what is used of each by its name. */
export const LimitsInUse = component("LimitsInUse", { limits: WorkspaceLimits, used: WorkspaceUse });
export type LimitsInUse = z.infer<typeof LimitsInUse>;

/**
 * An agent's question for tokens of its workspace's day. From here on it has `held`, of which `booked` was or may be
 * billed. It asks for `need` in all. Its questions of a day are numbered: one that comes late changes nothing.
 */
export type TokensAsked = {
  /** The agent, or the space of a router. */
  agentId: string;
  day: string;
  seq: number;
  held: number;
  booked: number;
  need: number;
  /** No more than it needs. */
  exact?: true;
};

/**
 * `leased`: what it has leased in all; null where a newer question, `seq`, came before. `booked`: others have leased
 * what is left, and may give it back. `isFree`: the workspace has no such limit, and a router needs no lease.
 */
export type TokensLeased = { seq: number; leased: number | null; is: "leased" | "booked" | "spent"; isFree?: true };

/** A workspace's methods about its limits. */
export interface LimitMethods {
  /** The operator's limits, and what is used of each. */
  limits(): LimitsInUse;
  /** In place of all before. `conflict` where less is allowed than is used, unless forced. */
  setLimits(limits: SetLimits): LimitsInUse;
  /**
   * Whether a space with this id may be made until then, if it is not there, by this person or service: else
   * `limit_reached`.
   */
  admitSpace(id: string, madeBy?: string, until?: number): null;
  /** From an agent whose tokens are metered, or a space for its router. */
  leaseOfDay(asked: TokensAsked): TokensLeased;
  /** From a mind of an agent, or a space: what it used. Answers up to which of its rows it has told. */
  noteUsage(report: UsageReport): UsageHeard;
  /** `from` and `to`: the first and the last day, UTC. */
  usage(page: UsageRequest): UsagePage;
  /** The space refused to be made under that admission. */
  dismissSpace(id: string): null;
}
