import type { Env } from "../env/env.ts";
import { createUsageReport } from "../env/report-usage.ts";
import type { EntityPrincipal } from "../protocol/principal.ts";
import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import { fault } from "../shared/fault.ts";
import { createIds } from "../shared/ids.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { breathe, withTimeout } from "../shared/timeouts.ts";
import { createJobs } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import { createAudit } from "./audit.ts";
import { keyProofAnswerMs, watchdogMs } from "./bounds.ts";
import { createClientRates } from "./client-rates.ts";
import { createAgentFollower } from "./delivery/agent-follower.ts";
import { Delivery, deliverTimer } from "./delivery/delivery.ts";
import { createEndpointFollower } from "./delivery/endpoint-follower.ts";
import { createIndexFollower } from "./delivery/index-follower.ts";
import { createPersonFollower } from "./delivery/person-follower.ts";
import { Subscribers } from "./delivery/subscribers.ts";
import { createForgetting } from "./forgetting.ts";
import { createFormerAgents } from "./former-agents.ts";
import { createGroupCommit } from "./group-commit.ts";
import { type Append, createLog, type LogRow } from "./log/log.ts";
import { createMembers } from "./members.ts";
import { createAddressed } from "./people/addressed.ts";
import { createDecisions } from "./router/decisions.ts";
import { createRouter } from "./router/router.ts";
import { createRouterLedger } from "./router/router-ledger.ts";
import { createSettings } from "./settings.ts";
import { createSockets } from "./space-sockets.ts";
import { LiveStreams } from "./streams/live-streams.ts";
import { createToolCalls } from "./tool-calls/tool-calls.ts";
import { usageOf } from "./usage.ts";

/** The parts of a space over its database. The modules beside this one act on them. */
export const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const settings = createSettings(db);
  const whose = () => ({ spaceId: settings.find()?.id });
  const timers = createTimers(db, ctx.storage, clock, whose, [deliverTimer]);
  const jobs = createJobs({
    db,
    timers,
    clock,
    whose,
    waitUntil: (work) => ctx.waitUntil(work),
    object: ctx.id.toString(),
  });
  const members = createMembers(db);
  const log = createLog(db);
  const subscribers = new Subscribers(db);
  const decisions = createDecisions(db);
  const ledger = createRouterLedger(db);
  const toolCalls = createToolCalls(db);
  const sockets = createSockets(ctx, env, timers, clock);
  const live: LiveStreams = new LiveStreams(clock, (frame) => {
    fault("space.mid-speech", ctx);
    if (frame.type === "agent.active" || frame.type === "agent.inactive") delivery.stir();
    if (sockets.size > 0) sockets.broadcast(JSON.stringify(frame));
  });
  const forgetAll = (): void => {
    for (const each of [log, decisions, ledger, toolCalls, members]) each.clear();
    settings.change({ name: "", router: null, release: null });
  };
  const audit = createAudit({ env, jobs, clock, settings, members });
  const around = { ctx, env, timers, clock, log, members, settings, decisions };
  const forgetting = createForgetting({ ...around, jobs, subscribers, forgetAll, object: ctx });
  /** One that is deleted takes no room of its workspace's, though its words stay until its agents have forgotten. */
  const storedBytes = (): number => (settings.find()?.deletedSeq === null ? ctx.storage.sql.databaseSize : 0);
  const usage = createUsageReport({
    env,
    timers,
    clock,
    ...usageOf(settings, log, ledger, { clock, bytes: storedBytes }),
  });
  const ids = createIds(ringOf(env).ids.secret);
  const formerAgents = createFormerAgents({ ...around, ids, jobs });
  const { tellMind } = formerAgents;
  const addressed = createAddressed(log);
  const ofPeople = { log, settings, members, toolCalls, live, addressed };
  const endpoints = createEndpointFollower({
    ...{ ...around, endpoints: env.ENDPOINT, subscribers },
    transaction: (work) => db.transaction(work),
    begun() {
      timers.setNoLater(deliverTimer, clock.now() + watchdogMs);
      ctx.waitUntil(breathe().then(() => delivery.kick()));
    },
  });
  const followers = {
    person: createPersonFollower({ ...ofPeople, people: env.PERSON }),
    agent: createAgentFollower({ ...around, agents: env.AGENT, forgetting, tellMind }),
    index: createIndexFollower({ ...around, workspaces: env.WORKSPACE, followed: endpoints.follow }),
    endpoint: endpoints.follower,
  };
  const delivery: Delivery = new Delivery({ ...around, followers, subscribers, forgetting });
  const transaction = <T>(work: () => T): T => db.transaction(work);

  /**
   * The only way into the log. One transaction stores the events, what they change and the timer that guards their
   * delivery. Then the sockets and the subscribers are told, in the same turn and order.
   */
  const record = <T>(write: (append: Append) => T): T => {
    const rows: LogRow[] = [];
    const value = transaction(() => {
      const written = write((event) => {
        const row = log.append(event);
        rows.push(row);
        return row;
      });
      delivery.arm(rows);
      return written;
    });
    addressed.noted(rows);
    for (const row of rows) sockets.broadcast(row.frame);
    delivery.kick(rows);
    // Its router was billed by the time that it has decided.
    if (rows.some(({ type }) => ["space.message", "message.routed"].includes(type))) usage.noted();
    else usage.stored();
    return value;
  };

  return {
    ...{ db, clock, timers, jobs, settings, members, log, subscribers, decisions, toolCalls, sockets, live, delivery },
    ...{ transaction, record, audit, usage },
    ofPeople,
    /** A person asks to be told: what they answered before counts no more. */
    asked: followers.person.asked,
    noteRead: audit.noteRead,
    async isAdmin({ workspaceId, entityId }: EntityPrincipal): Promise<boolean> {
      const asked = env.WORKSPACE.getByName(workspaceId).standing(entityId);
      const standing = await withTimeout(keyProofAnswerMs, asked);
      return standing.ok && standing.value.role === "admin";
    },
    ids,
    ...{ formerAgents, forgetting, endpoints },
    router: createRouter({ ...around, jobs, ledger, record, noteSecretUsed: audit.noteSecretUsed }),
    rates: createClientRates(),
    groupCommit: createGroupCommit(ctx.storage),
  };
};

export type SpaceServices = ReturnType<typeof createServices>;

/** Throws `limit_reached` where the space, or its workspace, stores all that it may. */
export const requireStorage = ({ usage }: Pick<SpaceServices, "usage">): void => usage.requireRoom();
