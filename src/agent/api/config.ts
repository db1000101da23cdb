import { eq, sql } from "drizzle-orm";
import { hookSecretName, resealed } from "../../auth/sealing.ts";
import type { Env } from "../../env/env.ts";
import { adapters } from "../../models/adapt.ts";
import { AgentConfig, type Agent as AgentView, type UpdateAgent } from "../../protocol/agent.ts";
import type { Exposure } from "../../protocol/agent-rpc.ts";
import type { AuditActor, AuditNote } from "../../protocol/audit.ts";
import { continuityFacts } from "../../protocol/continuity.ts";
import type { ContextView } from "../../protocol/run.ts";
import { withoutIdleTimeouts } from "../../protocol/tool.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError, errorKind, unwrap } from "../../shared/errors.ts";
import { issuesOf } from "../../shared/issues.ts";
import { timeoutSignal, withTimeout } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxInboxEvents, mindAnswerMs, viewTimeoutMs } from "../bounds.ts";
import { ownerOf } from "../context/blocks.ts";
import { compose } from "../context/compose.ts";
import { triggerOf } from "../inbox/batch.ts";
import { heartbeatTimer, startHeartbeat } from "../plans/beats.ts";
import { plansTimer } from "../plans/plans.ts";
import { composingOf } from "../run/composing.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import type { RunServices } from "../run/run-services.ts";
import { newReaders, takeConfig, warningsOf } from "../run/settings.ts";
import { inbox, jobs, journal, overheard, waits } from "../schema.ts";
import { estimateText } from "../tokens.ts";
import { checkedConfig } from "../tools/check-config.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { confidentialSpacesOf, configureKind, settle, tellCompartments } from "./compartments.ts";

/** A config that has nothing of the other continuity, and whose tools can be used here. Throws `invalid_request`. */
export const usableConfig = (config: AgentConfig, { ENVIRONMENT }: Env): AgentConfig => {
  if (!continuityFacts(config).takesBatches && config.context.maxEvents !== undefined) {
    const message = "belongs to a consciousness: a run of a timeline takes one event. Leave it out, or set it to null";
    throw new ColloquyError("invalid_request", `context.maxEvents ${message}`, {
      issues: [{ path: "context.maxEvents", message }],
    });
  }
  return checkedConfig(config, { allowLoopback: ENVIRONMENT === "development" });
};

/** A config with a patch applied; `limits` and `context` merge field by field. Throws `invalid_request`. */
const mergeConfig = (config: AgentConfig, changes: UpdateAgent): AgentConfig => {
  const merged = AgentConfig.safeParse({
    // A name stays as it is, also one that could not be given any more.
    ...withoutNulls({ ...config, name: "kept", ...changes }),
    limits: { ...config.limits, ...changes.limits },
    context: withoutNulls({ ...config.context, ...changes.context }),
  });
  if (merged.success) return { ...merged.data, name: changes.name ?? config.name };
  const issues = issuesOf(merged.error);
  const [{ path, message } = { path: "", message: "" }] = issues;
  const why = `the config would not be valid with these changes: ${path || "it"} ${message}`;
  throw new ColloquyError("invalid_request", why, { issues });
};

/** An agent's config without what was taken for a timeline before it was refused, and had no effect. */
const withoutEffectless = (config: AgentConfig): AgentConfig => {
  const { maxEvents, ...context } = config.context;
  return !continuityFacts(config).takesBatches && maxEvents !== undefined ? { ...config, context } : config;
};

/** The agent's config as it would be with the changes. Throws `invalid_request`. */
const changedConfig = ({ services }: AgentRuntime, changes: UpdateAgent): AgentConfig =>
  usableConfig(mergeConfig(withoutEffectless(services.identity.get().config), changes), services.env);

const exposureBy = (runtime: AgentRuntime, config: AgentConfig): Exposure => {
  const { identity, sharedBlocks } = runtime.services;
  const isWriter = sharedBlocks.list().some(({ permission }) => permission !== "ReadOnly");
  const fields = newReaders({ ...identity.get().config, isWriter }, { ...config, isWriter });
  return { fields, spaces: fields.length === 0 ? [] : confidentialSpacesOf(runtime) };
};

/** Notes of this agent for its workspace's audit log, each set in the transaction of what it notes. */
const auditKind = "audit";

const tellNote = async ({ services: { env, identity } }: AgentRuntime, payload: unknown): Promise<undefined> => {
  const workspace = env.WORKSPACE.getByName(identity.get().workspaceId);
  const noted = await withTimeout(mindAnswerMs, workspace.noteAudit(payload as AuditNote));
  if (!noted.ok && errorKind(noted.problem.code).retryable) unwrap(noted);
};

export const handleAudit = (runtime: AgentRuntime): void =>
  runtime.jobs.handle(auditKind, { atOnce: 1, run: ({ payload }) => tellNote(runtime, payload) });

/** The agent ends: what was not told is told before. Throws where that cannot be: whoever ends it tries again. */
export const tellNotes = async (runtime: AgentRuntime): Promise<void> => {
  const untold = runtime.db.select().from(jobs).where(eq(jobs.kind, auditKind)).all();
  for (const { payload } of untold) await tellNote(runtime, payload);
};

/** Changes the config, and what follows from it. Throws `invalid_request`, and `forbidden` for what the caller may not expose. */
const configure = (runtime: AgentRuntime, changes: UpdateAgent, readable?: string[], by?: AuditActor): void => {
  const { services, timers } = runtime;
  const config = changedConfig(runtime, changes);
  if (readable && exposureBy(runtime, config).spaces.some((id) => !readable.includes(id))) {
    throw new ColloquyError("forbidden", "the agent has come into another confidential space: send the change again");
  }
  const isChanged = (field: keyof UpdateAgent): boolean => changes[field] !== undefined;
  services.transaction(() => {
    const updatedAt = services.clock.now();
    takeConfig(services, config, isChanged, () => services.identity.configure({ config, updatedAt }));
    if (isChanged("heartbeat")) startHeartbeat(timers, config.heartbeat, updatedAt);
    tellCompartments(runtime);
    if (!by) return;
    const target = services.identity.get().id;
    const key = [target, services.ids.mint("key")].join(" ");
    const detail = { fields: Object.keys(changes).sort().join(" ") };
    const payload: AuditNote = { action: "agent.changed", actor: by, target, detail, at: updatedAt, once: key };
    runtime.jobs.set({ kind: auditKind, key, payload });
  });
  runtime.reconsider();
};

/**
 * Counts of the inbox's events, and times in milliseconds since the epoch. `filling` are the events that are not dead. One
 * query reads them all, since an agent usually has to be woken for it.
 */
type Figures = Record<"events" | "dead" | "filling", number> &
  Record<"writtenAt" | "retriedAt" | "replyDueAt", number | null>;
const figuresOf = ({ db, services }: AgentRuntime): Figures =>
  db.get(sql`select (select created_at from ${journal} order by seq desc limit 1) as writtenAt,
    (select min(due_at) from ${waits} where due_at > ${services.clock.now()}) as replyDueAt,
    count(*) filter (where status = 'pending') + (select count(*) from ${overheard}) as events,
    count(*) filter (where status = 'dead') as dead, count(*) filter (where status <> 'dead') as filling,
    min(retry_at) filter (where status = 'pending' and retry_at > ${services.clock.now()}) as retriedAt from ${inbox}`);

/**
 * The state of the loop: what it does and since when, what it waits for, and its last error. It is read from the rows
 * that the loop itself uses, so it cannot differ from what happens.
 */
const activityOf = (runtime: AgentRuntime): NonNullable<AgentView["activity"]> => {
  const { services, timers, loop } = runtime;
  const { createdAt, lastError, config } = services.identity.get();
  const hourFullUntil = services.runs.hourFullUntil(config.limits.maxRunsPerHour);
  const { state, runId = null, since, resumesAt } = loop.state();
  const { writtenAt, retriedAt, replyDueAt, filling, ...waitingEvents } = figuresOf(runtime);
  // A loop that does nothing has done so since its last run ended or came to rest.
  const rests = Math.max(createdAt, services.runs.newest()?.completedAt ?? 0, writtenAt ?? 0);
  const earliest = (...times: (number | null | undefined)[]): number =>
    Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
  const shown = (time: number): string | null => (Number.isFinite(time) ? isoTime(time) : null);
  const waitsForHour = waitingEvents.events > 0 ? hourFullUntil : undefined;
  const nextRetryAt = earliest(state === "backing_off" ? resumesAt : waitsForHour, retriedAt);
  const nextPlanAt = earliest(timers.dueAt(plansTimer));
  const waitsEnd = earliest(replyDueAt, services.calls.nextDueAt());
  const nextDueAt = earliest(resumesAt, nextRetryAt, nextPlanAt, timers.dueAt(heartbeatTimer), waitsEnd);
  return {
    state,
    since: isoTime(since ?? rests),
    ...withoutNulls({
      ...{ runId, nextDueAt: shown(nextDueAt), nextRetryAt: shown(nextRetryAt), nextPlanAt: shown(nextPlanAt) },
      refusing:
        filling >= maxInboxEvents
          ? ("maxInboxEvents" as const)
          : hourFullUntil !== undefined
            ? ("maxRunsPerHour" as const)
            : null,
      lastError: lastError && { ...lastError, at: isoTime(lastError.at) },
    }),
    ...(config.runtime === "guest" && { guest: { connected: services.guests.goneAt() > services.clock.now() } }),
    waiting: {
      replies:
        services.runs.active().filter(({ status }) => status === "waiting_reply").length + services.waits.ofCycles(),
      calls: services.calls.waiting(),
      ...waitingEvents,
    },
    tokensToday: services.ledger.spent(),
    storage: services.usage.storage(),
  };
};

/** The agent as a holder of the workspace's key sees it. */
export const agentView = (runtime: AgentRuntime): AgentView => {
  const { identity, mcp } = runtime.services;
  const row = identity.get();
  const warnings = warningsOf(row.config);
  return {
    id: row.id,
    config: row.config,
    createdAt: isoTime(row.createdAt),
    updatedAt: isoTime(row.updatedAt),
    activity: activityOf(runtime),
    ...(row.config.mcp.servers.length === 0 ? {} : { mcp: mcp.status() }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
};

/** Makes the agent, unless it was made before. */
export const createAgent = (
  { services, timers, isEnding }: AgentRuntime,
  { id, workspaceId, config }: { id: string; workspaceId: string; config: AgentConfig },
): void => {
  if (isEnding)
    throw new ColloquyError("unavailable", "the former agent of this key is being removed: try again in a minute");
  if (services.identity.find()) return;
  const { config: created } = services.identity.create(id, workspaceId, AgentConfig.parse(withoutIdleTimeouts(config)));
  startHeartbeat(timers, created.heartbeat, services.clock.now());
  services.mcp.configured();
};

/** The next run's input as it would be now, even if nothing wakes the agent. Writes nothing. */
const contextView = async (services: RunServices): Promise<ContextView> => {
  const { config, model, limits } = composingOf(services);
  const { snapshot, blocks, events } = await continuityOf(config).next(services, timeoutSignal(viewTimeoutMs));
  const { instructions, messages, tools, sections, tokens, dropped } = compose(snapshot);
  const newest = services.runs.newest();
  return {
    ...{ instructions, sections, tokens, dropped, limits },
    messages: adapters[model.family](messages),
    tools: Object.keys(tools),
    blocks: blocks.map(({ key, label, type, text }) => ({
      ...{ label, type, tokens: estimateText(text) },
      ...withoutNulls({ ownerId: ownerOf(key) ?? null }),
    })),
    ...withoutNulls({
      trigger: events.length === 0 ? null : triggerOf(events),
      prefixReuse: newest ? services.windows.reuse(newest, { instructions, messages }) : null,
    }),
  };
};

const setSecrets = (runtime: AgentRuntime, sealed: Record<string, string>): null => {
  runtime.services.transaction(() => {
    runtime.services.identity.configure({ secrets: sealed });
    tellCompartments(runtime);
  });
  runtime.services.mcp.reconsider();
  runtime.reconsider();
  return null;
};

/** The agent's config, its secrets, and what its next run would read. */
export const configArea: Area<
  "describe" | "checkUpdate" | "update" | "setSecrets" | "setSuspended" | "meterTokens" | "reseal" | "context"
> = {
  describe: agentView,
  checkUpdate: (runtime, changes) => exposureBy(runtime, changedConfig(runtime, changes)),
  update: (runtime, changes, readable, by) => {
    configure(runtime, changes, readable, by);
    return agentView(runtime);
  },
  setSecrets,
  reseal: async (runtime, sealed) => {
    const { identity, env, hooks } = runtime.services;
    const { workspaceId, secrets } = identity.get();
    if (JSON.stringify(secrets) !== JSON.stringify(sealed)) setSecrets(runtime, sealed);
    const unopened = await hooks.reseal((id, each) => resealed(env, workspaceId, hookSecretName(id), each));
    return { unopened, waiting: runtime.jobs.keys(configureKind).length };
  },
  setSuspended: (runtime, suspended) => {
    const { services, timers } = runtime;
    if (services.identity.get().suspended === suspended) return null;
    services.transaction(() => {
      services.identity.configure({ suspended });
      tellCompartments(runtime);
    });
    if (!suspended) startHeartbeat(timers, services.identity.get().config.heartbeat, services.clock.now());
    settle(runtime, !suspended);
    return null;
  },
  meterTokens: (runtime, isMetered) => {
    runtime.services.ledger.meter(isMetered);
    runtime.reconsider();
    return null;
  },
  context: ({ services }) => contextView(services),
};
