import { and, eq, gt, sql } from "drizzle-orm";
import type { AgentMethods } from "../../protocol/agent-rpc.ts";
import { closeCodes } from "../../protocol/events.ts";
import type { Redaction } from "../../protocol/message-change.ts";
import type { Delivery } from "../../protocol/rpc.ts";
import type { SecretUsed } from "../../protocol/secret.ts";
import { isoTime } from "../../shared/clock.ts";
import { countOf, type Database } from "../../shared/database.ts";
import { ColloquyError, errorKind, type Outcome, suspendedError, unwrap } from "../../shared/errors.ts";
import { compartmentId } from "../../shared/ids.ts";
import { requireAwaited } from "../../shared/require-awaited.ts";
import { withTimeout, workOff } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxCompartmentsAtOnce, mindAnswerMs, redactionAgainMs, removeAgainMs } from "../bounds.ts";
import { type AgentRow, mindOf } from "../identity.ts";
import { changeMessages } from "../inbox/message-changes.ts";
import { secretUsesOf } from "../memory/secret-uses/secret-uses.ts";
import { isOfErased } from "../redaction/parts.ts";
import { adoptSettings, settingsFor } from "../run/settings.ts";
import { compartments, jobs as jobsTable, spaces } from "../schema.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/**
 * An agent's minds: the open one, and one compartment for each confidential space that it was ever in. Each is an object
 * of its own, with the tables of an agent.
 *
 * Invariants
 * 1. The open mind's row of a compartment is stored before the compartment stores anything. So what ends the agent ends
 *    all of its minds.
 * 2. A compartment begins by the first delivery of its space, and only while its agent is there.
 * 3. Settings go to compartments, and nothing comes back but what their steps cost. The newest settings win, in whatever
 *    order they come.
 * 4. A compartment ends with its space and with its agent. Where the removal does not reach it, it ends itself when it
 *    asks the open mind: that answers no mind while it ends.
 * 5. A lease is booked before its step starts and settled once: what all minds spend stays within the agent's day (B2).
 */
export const configureKind = "configure";
const removeKind = "remove";
const redactKind = "redact";
/** A redaction that a compartment is waited for. `untold`: what it is still to be told under the same name, in order. */
type ToldMind = { mindId: string; redaction: Redaction; untold: Redaction[] };

/** The last release stored `isTold` instead. */
const untoldIn = (payload: unknown): Redaction[] => {
  const { redaction, untold, isTold } = payload as Omit<ToldMind, "untold"> & Partial<ToldMind> & { isTold?: true };
  return untold ?? (isTold ? [] : [redaction]);
};

const untoldBy = (db: Database, key: string): Redaction[] => {
  const isIt = and(eq(jobsTable.kind, redactKind), eq(jobsTable.key, key));
  const job = db.select().from(jobsTable).where(isIt).get();
  return job ? untoldIn(job.payload) : [];
};

/** The answer of another mind of the agent. Throws `unavailable` where it cannot be reached. */
const answerOf = async <T>(asked: Promise<Outcome<T>>): Promise<Outcome<T>> => {
  try {
    return await withTimeout(mindAnswerMs, asked);
  } catch (cause) {
    throw new ColloquyError("unavailable", "another mind of the agent cannot be reached at the moment", { cause });
  }
};

const isGone = (outcome: Outcome<unknown>): boolean => !outcome.ok && outcome.problem.code === "not_found";

const ofItsMinds = ["openCompartment", "feed", "leaseTokens", "settleTokens"] as const;
/** The methods that the open mind of an agent serves. A compartment refuses them. */
const ofOpenMind = new Set<string>([
  ...ofItsMinds,
  ...(["update", "checkUpdate", "setSecrets", "setSuspended", "meterTokens", "reseal", "takeBackBlocks"] as const),
  ...(["trigger", "receive", "createHook", "updateHook", "rotateHook", "deleteHook"] as const),
] satisfies (keyof AgentMethods)[]);
/** These calls store more. An agent without room refuses them. */
const growing = [
  ...(["trigger", "receive", "createBlock", "editBlock", "editSharedBlock", "archive"] as const),
  ...(["putMemory", "putGoal", "putPlan", "createHook"] as const),
] satisfies (keyof AgentMethods)[];
/**
 * The methods that a suspended workspace refuses: what is read and what is taken away goes on. A compartment that was not told
 * yet makes no step, since it leases none.
 */
const whileAwake = new Set<string>([
  ...growing,
  ...(["update", "updateBlock", "shareBlock", "updateHook", "rotateHook", "leaseTokens"] as const),
  ...(["retryEvent", "retryDeadEvents", "claimToolCall", "answerToolCall"] as const),
  ...(["claimRun", "callInRun", "speakInRun", "endRun", "renewClaim"] as const),
] satisfies (keyof AgentMethods)[]);

/** Throws `forbidden` where the other kind of mind would have to be asked, and `not_found` to minds of an ending agent. */
export const requireMind = (method: string, { isEnding, services }: AgentRuntime): void => {
  const { compartmentId: ownId, suspended } = services.identity.get();
  if (suspended && whileAwake.has(method)) throw suspendedError();
  if (growing.some((each) => each === method)) services.usage.requireRoom();
  else services.usage.stored();
  if (isEnding && [...ofItsMinds, "trigger", "receive"].includes(method)) {
    throw new ColloquyError("not_found", "there is no such agent");
  }
  if (ownId === null ? method !== "configureCompartment" : !ofOpenMind.has(method)) return;
  const whose = ownId === null ? "a compartment's" : "the agent's open mind's";
  throw new ColloquyError("forbidden", `${method} is ${whose}: what a confidential space's runs have takes it not`);
};

/** Whether a delivery is for this mind. Of a compartment it names the mind and the space that it is of. */
export const isFor = ({ compartment, space }: Delivery, row: AgentRow): boolean =>
  (compartment?.mindId ?? row.id) === mindOf(row) && (row.compartmentSpaceId ?? space.id) === space.id;

/**
 * Turns a fresh object into the compartment that a delivery is for. Throws `not_found` where the delivery's word does
 * not hold or the agent is gone. Throws `unavailable` where its open mind cannot be reached: the space tries again.
 */
export const beginCompartment = async (
  { env, ids, open }: Pick<AgentRuntime["services"], "env" | "ids"> & { open: () => Promise<AgentRuntime> },
  { space: { id: spaceId, workspaceId, deleted }, compartment, left, messages }: Delivery,
): Promise<void> => {
  const isMeant = compartment?.mindId === compartmentId(ids, compartment?.agentId ?? "", spaceId);
  // One that never began has nothing to leave, and one of a deleted space is over.
  if (!compartment || !isMeant || deleted || (left && messages.length === 0)) {
    throw new ColloquyError("not_found", "there is no such agent");
  }
  const { agentId, mindId } = compartment;
  const openMind = env.AGENT.getByName(agentId);
  const settings = unwrap(await answerOf(openMind.openCompartment(workspaceId, spaceId)));
  const { config, version, secrets, suspended } = settings;
  const { services } = await open();
  if (services.identity.find()) return;
  const own = { compartmentId: mindId, compartmentSpaceId: spaceId, activeSpaceId: spaceId };
  const facts = { ...own, secrets, suspended: suspended ?? false, settingsVersion: version };
  services.transaction(() => {
    services.identity.create(agentId, workspaceId, config, facts);
    services.mcp.configured();
  });
};

/** Ends all compartments. Throws where one cannot be reached: whoever ends the agent tries again. */
export const removeCompartments = async (runtime: AgentRuntime, workspaceId: string): Promise<void> => {
  // From now on no other begins, and none is fed or leased tokens: a restart finds the job, which tries again.
  runtime.isEnding = true;
  const { env, clock } = runtime.services;
  runtime.jobs.set({ kind: removeKind, key: removeKind, dueAt: clock.now() + removeAgainMs });
  await workOff(runtime.db.select().from(compartments).all(), maxCompartmentsAtOnce, async ({ mindId }) => {
    const ended = await answerOf(env.AGENT.getByName(mindId).remove(workspaceId));
    if (!isGone(ended)) unwrap(ended);
  });
};

/**
 * Whether a delivery ends the compartment that it is for: nobody reads what it has once its space is deleted. The open mind
 * hears of that itself, and forgets that there was one.
 */
export const isLast = ({ compartment, space: { deleted } }: Delivery): boolean =>
  compartment !== undefined && deleted === true;

/** The confidential spaces that an agent is in, and those that it has a compartment of. */
export const confidentialSpacesOf = ({ db, services: { spaces: known } }: AgentRuntime): string[] => {
  const mine = known.mine().flatMap(({ id, confidential }) => (confidential ? id : []));
  const heard = db.select().from(compartments).all();
  return [...new Set([...mine, ...heard.map(({ spaceId }) => spaceId)])];
};

/** The open mind has heard that the space is deleted: its compartment ends by itself. */
export const forgetCompartment = (db: Database, { compartment, space: { id, deleted } }: Delivery): void => {
  if (compartment === undefined && deleted) db.delete(compartments).where(eq(compartments.spaceId, id)).run();
};

/** Has each compartment told, until it knows, that settings changed or an open block was deleted. In that transaction. */
export const tellCompartments = ({ db, jobs }: Pick<AgentRuntime, "db" | "jobs">): void => {
  for (const { spaceId } of db.select().from(compartments).all()) jobs.set({ kind: configureKind, key: spaceId });
};

/** Drops a compartment's copies of open blocks that were deleted. Its next run would too, but may never begin. */
const forgetDeletedBlocks = async ({ services: { env, identity, sharedBlocks } }: AgentRuntime): Promise<void> => {
  const known = sharedBlocks.openVersions();
  if (Object.keys(known).length === 0) return;
  const { id: ownerId, workspaceId } = identity.get();
  const { own } = unwrap(await answerOf(env.AGENT.getByName(ownerId).openBlocks(workspaceId, known)));
  for (const { label } of own) delete known[label];
  for (const label of Object.keys(known)) sharedBlocks.drop({ ownerId, label });
};

/** Compartments were told of the open mind's runs, so each of them redacts the same words. In the same transaction. */
export const tellMinds = ({ db, jobs }: Pick<AgentRuntime, "db" | "jobs">, redaction: Redaction): void => {
  for (const { mindId } of db.select().from(compartments).all()) {
    const key = `${mindId} ${redaction.id}`;
    const payload: ToldMind = { mindId, redaction, untold: [...untoldBy(db, key), redaction] };
    jobs.set({ kind: redactKind, key, payload });
  }
};

/** The settings have changed: followers of a suspended mind are cut off, and else what waited goes on. */
export const settle = ({ services, resume, reconsider }: AgentRuntime, wasSuspended: boolean): void => {
  const { subscriptions, plans } = services;
  if (services.isSuspended()) subscriptions.closeAll(closeCodes.suspended, "the workspace is suspended");
  else {
    plans.resume();
    if (wasSuspended) resume();
    else reconsider();
  }
};

/** Has the jobs of this area done. */
export const handleCompartments = (runtime: AgentRuntime): void => {
  const { db, jobs } = runtime;
  const { env, identity, clock, endMind } = runtime.services;
  runtime.isEnding = countOf(db, jobsTable, eq(jobsTable.kind, removeKind)) > 0;
  jobs.handle(removeKind, {
    atOnce: 1,
    async run() {
      await removeCompartments(runtime, identity.get().workspaceId);
      endMind();
      return clock.now() + removeAgainMs;
    },
  });
  jobs.handle(redactKind, {
    atOnce: maxCompartmentsAtOnce,
    async run({ key, payload }) {
      const { mindId, redaction } = payload as ToldMind;
      const untold = untoldIn(payload);
      const [mind, { workspaceId }] = [env.AGENT.getByName(mindId), identity.get()];
      if (untold.length > 0) {
        const told = await answerOf(mind.redact(workspaceId, untold));
        if (isGone(told)) return undefined;
        unwrap(told);
        // Others may have come meanwhile.
        const left: ToldMind = { mindId, redaction, untold: untoldBy(db, key).slice(untold.length) };
        jobs.set({ kind: redactKind, key, payload: left });
        return undefined;
      }
      const done = await answerOf(mind.forgetSpace(workspaceId, redaction.spaceId ?? "", redaction));
      return isGone(done) || unwrap(done).isDone ? undefined : clock.now() + redactionAgainMs;
    },
  });
  jobs.handle(configureKind, {
    atOnce: maxCompartmentsAtOnce,
    async run({ key }) {
      const row = db.select().from(compartments).where(eq(compartments.spaceId, key)).get();
      if (!row) return undefined;
      const agent = identity.get();
      const compartment = env.AGENT.getByName(row.mindId);
      const told = await answerOf(compartment.configureCompartment(agent.workspaceId, settingsFor(agent)));
      // One that has not begun yet asks for all of it as it does.
      if (!told.ok && errorKind(told.problem.code).retryable) unwrap(told);
      return undefined;
    },
  });
};

export const compartmentsArea: Area<
  | "redact"
  | "forgetMessages"
  | "forgetSpace"
  | "compartments"
  | "secretUses"
  | "confidentialSpaces"
  | "openCompartment"
  | "configureCompartment"
  | "leaseTokens"
  | "settleTokens"
> = {
  compartments: ({ db }, { limit, cursor }) => {
    const place = sql<number>`${spaces}.rowid`;
    const isMeant = sql`${spaces.snapshot} ->> '$.confidential' and ${spaces.snapshot} ->> '$.deleted' is null`;
    const rows = db.select({ place, space: spaces.snapshot, left: spaces.left }).from(spaces);
    const found = rows
      .where(and(isMeant, gt(place, cursorOf(cursor) ?? 0)))
      .orderBy(place)
      .limit(limit + 1);
    return page(
      found.all(),
      limit,
      (row) => row.place,
      ({ space, left }) => ({ space, left }),
    );
  },
  redact: ({ services }, redactions) => {
    const { compartmentSpaceId } = services.identity.get();
    services.transaction(() => {
      for (const each of redactions) services.redactions.enter(each, each.spaceId === compartmentSpaceId);
    });
    return null;
  },
  forgetMessages: ({ services }, changes) => {
    services.transaction(() => changeMessages(services, changes));
    return null;
  },
  secretUses: async ({ db, services: { identity, env } }, name, since) => {
    const { id, workspaceId, compartmentSpaceId } = identity.get();
    const found: SecretUsed[] = secretUsesOf(db, name, since).map(
      ({ kind, by, host, cause, times, firstAt, lastAt }) => {
        const causeLike = (prefix: string): string | undefined =>
          cause.split(" ").find((each) => each.startsWith(prefix));
        const [runId, toolCallId] = [causeLike("run_"), causeLike("tc_")];
        return {
          ...{ agentId: id, ...withoutNulls({ spaceId: compartmentSpaceId }), kind, by, host, times },
          ...{ ...(runId && { runId }), ...(toolCallId && { toolCallId }) },
          ...{ firstAt: isoTime(firstAt), lastAt: isoTime(lastAt) },
        };
      },
    );
    await workOff(db.select().from(compartments).all(), maxCompartmentsAtOnce, async ({ mindId }) => {
      const told = await answerOf(env.AGENT.getByName(mindId).secretUses(workspaceId, name, since));
      if (!isGone(told)) found.push(...unwrap(told));
    });
    return found.toSorted((one, other) => other.lastAt.localeCompare(one.lastAt));
  },
  forgetSpace: async ({ db, jobs, services }, spaceId, part) => {
    const { redactions, search, transaction, env, identity, sharedBlocks } = services;
    if (!part) return { isDone: transaction(() => search.dropSpace(spaceId) && redactions.dropSpace(spaceId)) };
    // An agent that was deleted before it is erased took nothing back.
    for (const row of sharedBlocks.list()) if (row.ownerId === part.id) sharedBlocks.drop(row);
    const isToBeTold = (): boolean => jobs.keys(redactKind).some((key) => key.includes(` ${part.id}`));
    const own = transaction(() => redactions.forgets(part));
    if (!own.isDone || isToBeTold()) return { isDone: false };
    if (!isOfErased(part.id)) return { isDone: true };
    let objects = 1;
    // They are told, and have done it. How many rows that were is for nobody outside (C19).
    await workOff(db.select().from(compartments).all(), maxCompartmentsAtOnce, async ({ mindId }) => {
      const asked = await answerOf(env.AGENT.getByName(mindId).forgetSpace(identity.get().workspaceId, spaceId, part));
      if (!isGone(asked) && unwrap(asked)) objects += 1;
    });
    return { isDone: true, rows: own.rows, objects };
  },
  confidentialSpaces: confidentialSpacesOf,
  openCompartment: ({ db, services: { ids, identity, search } }, spaceId) => {
    const agent = identity.get();
    const mindId = compartmentId(ids, agent.id, spaceId);
    db.insert(compartments).values({ spaceId, mindId }).onConflictDoNothing().run();
    search.noticed(true);
    return settingsFor(agent);
  },
  configureCompartment: async (runtime, settings) => {
    const wasSuspended = runtime.services.isSuspended();
    if (adoptSettings(runtime.services, settings)) settle(runtime, wasSuspended);
    await forgetDeletedBlocks(runtime);
    return null;
  },
  leaseTokens: async ({ services: { ledger, budget, clock } }, { lease: step, tokens, person, until, spaceId }) => {
    const isBooked = (): boolean => {
      requireAwaited({ clock }, { until });
      return ledger.holds(step);
    };
    return budget.book({ step, tokens, person, spaceId }, isBooked);
  },
  settleTokens: ({ services: { ledger, usage } }, { lease, billed }) => {
    ledger.settle(lease, billed);
    usage.noted();
    return null;
  },
};
