import { eq, lt } from "drizzle-orm";
import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { AgentRpc } from "../protocol/agent-rpc.ts";
import type { EntityType } from "../protocol/entity.ts";
import type { KeyPrincipal } from "../protocol/principal.ts";
import type { IndexDelivery } from "../protocol/rpc.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError, errorKind, type Outcome, ok, refuse, unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { compartmentId, type Ids } from "../shared/ids.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { JobHandler, Jobs } from "../timers/jobs.ts";
import { maxHaltsAtOnce, maxTellsAtOnce, socketsKnownMs, socketUseMs, tellTimeoutMs } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Endpoints } from "./endpoints.ts";
import { socketObjects } from "./schema.ts";
import type { Secrets } from "./secrets.ts";
import type { SpaceIndex } from "./space-index.ts";

const kind = "tell";
/** A suspension, and the end of credentials, are told apart from the rest, and faster. */
const haltKind = "halt";
const halts = new Set(["suspend", "session", "credentials", "endpoint"]);
/** Asks for a space that was admitted, and that nobody has told of. */
const toBeKind = "space-to-be";

const Told = z.object({
  about: z.enum([
    ...(["rename", "remove", "session", "credentials", "secrets", "end", "suspend", "tokens", "retention"] as const),
    ...(["lines", "joined", "endpoint", "endpoints"] as const),
  ]),
  /** The space, the agent, the person or the endpoint that is told. */
  target: z.string(),
  /** The entity, the key or the session that it is about; empty where it is about the target itself. */
  subject: z.string(),
});
type Told = z.infer<typeof Told>;

/** Throws `unavailable` where there is no such agent since it is being imported. Before its last turn it hears nothing. */
export const askImported = async <T>(
  agent: Pick<AgentRpc, "isImporting">,
  ask: () => Promise<Outcome<T>>,
): Promise<Outcome<T>> => {
  const first = await ask();
  if (first.ok || first.problem.code !== "not_found") return first;
  if (!unwrap(await agent.isImporting())) return ask();
  throw new ColloquyError("unavailable", "The agent is being imported: it is told once it is there.");
};

const ofWorkspace = (workspaceId: string): KeyPrincipal => ({ kind: "key", workspaceId, keyId: "workspace" });

type Surroundings = {
  env: Pick<Env, "SPACE" | "AGENT" | "PERSON">;
  db: Database;
  /** Asked for where it is needed: a deployment without its secret has none. */
  ids: () => Pick<Ids, "compartment">;
  directory: Directory;
  secrets: Secrets;
  spaces: SpaceIndex;
  endpoints: Pick<Endpoints, "ids" | "tell" | "following">;
  jobs: Jobs;
  clock: Clock;
  /** Known once the workspace was created. */
  workspaceId: () => string;
  isSuspended: () => boolean;
  /** Days for which its spaces keep messages. */
  retentionDays: () => number | null;
  /** Its agents lease their tokens. */
  isMetered: () => boolean;
  /** Crashes it in tests. */
  object: Crashable;
};

/**
 * Tells spaces, agents, people's lines and endpoints of changes in the workspace: renames, removals, ends of credentials, secrets,
 * the end of an agent.
 *
 * Invariants
 * 1. A job is set in the transaction that makes it necessary: there its methods are called.
 * 2. A job names what it is about, never the content: that is read when it is told, so the last word wins.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export const createOutbox = (surroundings: Surroundings) => {
  const { env, ids, db, directory, secrets, spaces, endpoints, jobs, clock, object } = surroundings;

  const ask = async ({ about, target, subject }: Told): Promise<Outcome<null>> => {
    const workspaceId = surroundings.workspaceId();
    if (about === "secrets") {
      const agent = env.AGENT.getByName(target);
      return askImported(agent, () => agent.setSecrets(workspaceId, secrets.sealed()));
    }
    if (about === "end") {
      // It was made anew meanwhile, under the same key.
      if (directory.find(target)) return ok(null);
      const agent = env.AGENT.getByName(target);
      const ended = await askImported(agent, () => agent.remove(workspaceId));
      return !ended.ok && ended.problem.code === "not_found" ? ok(null) : ended;
    }
    if (about === "joined") return env.PERSON.getByName(target).joined(workspaceId, subject);
    if (about === "lines") return env.PERSON.getByName(target).remove(workspaceId);
    if (directory.find(target)?.type === "human") {
      const person = env.PERSON.getByName(target);
      if (about === "credentials") return person.proveAgain(workspaceId, subject);
      return person.setSuspended(workspaceId, surroundings.isSuspended());
    }
    if (about === "credentials" && target.startsWith("ent_")) {
      const proven = await env.AGENT.getByName(target).proveAgain(workspaceId, subject);
      // A compartment begins with what is said first, so there may be none.
      return !proven.ok && proven.problem.code === "not_found" ? ok(null) : proven;
    }
    if (target.startsWith("ep_")) return endpoints.tell(target);
    const space = env.SPACE.getByName(target);
    if (about === "endpoints") return space.setEndpoints(workspaceId, endpoints.following(target));
    if (about === "tokens") {
      const told = await env.AGENT.getByName(target).meterTokens(workspaceId, surroundings.isMetered());
      if (told.ok || told.problem.code !== "not_found" || !directory.find(target)) return told;
      return refuse("unavailable", "The agent is being made: it is told once it is there.");
    }
    if (about === "suspend") {
      const isOn = surroundings.isSuspended();
      const isAgent = target.startsWith("ent_");
      const told = await (isAgent ? env.AGENT.getByName(target) : space).setSuspended(workspaceId, isOn);
      if (told.ok || told.problem.code !== "not_found" || !isAgent || !directory.find(target)) return told;
      return refuse("unavailable", "The agent is being made: it is told once it is there.");
    }
    if (about === "retention") return space.setRetention(workspaceId, surroundings.retentionDays());
    if (about === "session" || about === "credentials") return space.proveAgain(workspaceId, subject);
    const entity = directory.find(subject);
    if (entity) return space.renameMember(workspaceId, entity.id, entity.name);
    return space.removeMember(ofWorkspace(workspaceId), subject);
  };

  const handlerOf = (atOnce: number): JobHandler => ({
    atOnce,
    async run({ payload }) {
      await faultOnceStored("workspace.before-tell", object);
      const told = Told.parse(payload);
      const outcome = await withTimeout(tellTimeoutMs, ask(told));
      if (!outcome.ok && errorKind(outcome.problem.code).retryable) unwrap(outcome);
      await faultOnceStored("workspace.after-tell", object);
      const { about, target } = told;
      // Trying again cannot change this refusal. The space is gone, for example: there is nobody left to tell.
      if (!outcome.ok) log.warn("outbox.refused", { about, target, code: outcome.problem.code });
      return undefined;
    },
  });
  jobs.handle(kind, handlerOf(maxTellsAtOnce));
  jobs.handle(haltKind, handlerOf(maxHaltsAtOnce));

  jobs.handle(toBeKind, {
    atOnce: maxTellsAtOnce,
    async run({ key }) {
      const until = spaces.toBeUntil(key);
      if (until === undefined) return undefined;
      const asked = env.SPACE.getByName(key).describe(ofWorkspace(surroundings.workspaceId()));
      const found = await withTimeout(tellTimeoutMs, asked);
      // One that is there tells of itself, and one may have been admitted anew meanwhile.
      const isNot = !found.ok && found.problem.code === "not_found" && spaces.toBeUntil(key) === until;
      if (isNot && until <= clock.now()) spaces.forgetToBe(key);
      return undefined;
    },
  });

  const tell = (about: Told["about"], target: string, subject = ""): void => {
    const payload = { about, target, subject };
    jobs.set({ kind: halts.has(about) ? haltKind : kind, key: `${about} ${target} ${subject}`, payload });
  };

  const tellSpaces = (about: "rename" | "remove", entityId: string): void => {
    for (const target of spaces.spaceIdsOf(entityId)) tell(about, target, entityId);
  };

  /** The minds of agents whose blocks an entity may follow: those in its spaces, of an admin, or of nobody's, all. */
  const mindsNear = (entityId?: string): string[] => {
    const issued = ids();
    const minds = spaces
      .agentsNear(entityId)
      .flatMap(({ agentId, spaceId, confidential }) =>
        confidential ? [agentId, compartmentId(issued, agentId, spaceId)] : [agentId],
      );
    const isAnybody = entityId === undefined || directory.find(entityId)?.role === "admin";
    return [...minds, ...(isAnybody ? directory.agentIds() : [])];
  };

  /** The objects that proved a socket lately, and when. A person's goes by its entity's id. */
  const provenObjects = (): Map<string, number> => {
    const rows = db.select().from(socketObjects).all();
    return new Map(rows.map(({ id, provenAt }) => [id, provenAt]));
  };

  /** The people who have had a line lately. */
  const lookers = (): string[] => [...provenObjects().keys()].filter((id) => directory.find(id)?.type === "human");

  /** Credentials have ended. Those who may have a socket are told before all others, however many these are. */
  const tellOfEnd = (subject: string, spaceIds: string[], minds: string[], people: string[]): void => {
    const proven = provenObjects();
    const provenAt = (target: string): number => {
      const own = proven.get(target);
      if (own !== undefined) return own;
      const namespace = target.startsWith("ent_") ? env.AGENT : env.SPACE;
      return proven.get(namespace.idFromName(target).toString()) ?? 0;
    };
    const targets = [...new Set([...people, ...spaceIds, ...minds])].map((target) => ({
      target,
      at: provenAt(target),
    }));
    for (const { target } of targets.sort((one, other) => other.at - one.at)) tell("credentials", target, subject);
  };

  const tellOfEndOf = (entityId: string, subject: string): void =>
    tellOfEnd(subject, spaces.spaceIdsOf(entityId), mindsNear(entityId), [entityId]);

  return {
    entityRenamed: (entityId: string): void => tellSpaces("rename", entityId),

    /** An object proves a socket. */
    noteSocket(id: string): void {
      const provenAt = clock.now();
      const known = db.select().from(socketObjects).where(eq(socketObjects.id, id)).get();
      if (known && known.provenAt > provenAt - socketUseMs) return;
      db.delete(socketObjects)
        .where(lt(socketObjects.provenAt, provenAt - socketsKnownMs))
        .run();
      db.insert(socketObjects)
        .values({ id, provenAt })
        .onConflictDoUpdate({ target: socketObjects.id, set: { provenAt } })
        .run();
    },

    sessionEnded: tellOfEndOf,

    /** An entity has signed out everywhere. */
    signedOut: (entityId: string): void => tellOfEndOf(entityId, entityId),

    /** A key, or an admin, may sign in nobody more. Those it signed in may be in any space, and follow any block. */
    makerEnded: (maker: string): void => tellOfEnd(maker, spaces.livingIds(), mindsNear(), lookers()),

    /** An agent's own object is ended too: its caller may be cut off before it has done so. */
    entityRemoved(entityId: string, type: EntityType): void {
      if (type === "agent") tell("end", entityId);
      if (type === "human") tell("lines", entityId);
      tellSpaces("remove", entityId);
    },

    /** The agents that are being ended. */
    ending: (): string[] => jobs.keys(kind).flatMap((key) => /^end (\S+)/.exec(key)?.[1] ?? []),

    /** A space may be made until then: after that it is asked for, if nobody has told of it. */
    spaceAdmitted: (spaceId: string, until: number): void =>
      jobs.set({ kind: toBeKind, key: spaceId, dueAt: until + tellTimeoutMs }),

    /** Its place is taken, or given back. */
    spaceSettled: (spaceId: string): void =>
      jobs.drop(toBeKind, spaceId, new ColloquyError("gone", "The space was told of")),

    secretsChanged(): void {
      for (const target of directory.agentIds()) tell("secrets", target);
    },

    suspensionChanged(): void {
      const targets = [...lookers(), ...directory.agentIds(), ...spaces.livingIds(), ...endpoints.ids()];
      for (const target of targets) tell("suspend", target);
    },

    /** Those of `spaceIds`, or all, that live hear which endpoints follow them. */
    endpointChanged(id: string, spaceIds: string[] | null): void {
      tell("endpoint", id);
      for (const target of spaceIds ?? spaces.livingIds()) tell("endpoints", target);
    },

    /** One space, or all of them, keep messages for so long where they do not say themselves. */
    retentionChanged(spaceId?: string): void {
      for (const target of spaceId === undefined ? spaces.livingIds() : [spaceId]) tell("retention", target);
    },

    /** One agent, or all of them, lease their tokens from now on, or do no more; what waited for tokens may go on. */
    tokensMetered(agentId?: string): void {
      for (const target of agentId === undefined ? directory.agentIds() : [agentId]) tell("tokens", target);
    },

    /** How many spaces and agents are still to be told of a suspension, a resumption or a change. */
    waiting: (): number => jobs.keys(haltKind).length + jobs.keys(kind).length,

    /** People with a line hear of a space that they are new in. A space may have added somebody whom the directory has removed or renamed meanwhile: it is told again. */
    spaceFollowed({ space, deleted }: IndexDelivery, joined: string[]): void {
      const looking = new Set(joined.length > 0 ? lookers() : []);
      for (const id of joined) if (looking.has(id)) tell("joined", id, space.id);
      // One that was made as the suspension began, which did not know of it.
      if (surroundings.isSuspended() && !deleted) tell("suspend", space.id);
      for (const { id, name } of deleted ? [] : space.members) {
        const entity = directory.find(id);
        if (entity?.name !== name) tell(entity ? "rename" : "remove", space.id, id);
      }
    },
  };
};
