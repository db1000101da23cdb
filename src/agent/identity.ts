import { unseal, unsealFor } from "../auth/sealing.ts";
import { type AgentConfig, Limits } from "../protocol/agent.ts";
import type { SecretUse } from "../protocol/secret.ts";
import { withoutIdleTimeouts } from "../protocol/tool.ts";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { RingEnv } from "../shared/secret-ring.ts";
import { agent } from "./schema.ts";

/**
 * Who this agent is: its one row.
 *
 * Invariants
 * 1. The row is read once and kept until it is written: this object is its only writer.
 * 2. Nobody changes a row that was handed out.
 */
export type AgentRow = typeof agent.$inferSelect;

export type Identity = ReturnType<typeof createIdentity>;

type CompartmentFacts = Pick<
  AgentRow,
  "compartmentId" | "compartmentSpaceId" | "activeSpaceId" | "secrets" | "settingsVersion" | "suspended"
>;

/** The owner of the ids of all that this object does: the agent, or its compartment. */
export const mindOf = ({ id, compartmentId }: Pick<AgentRow, "id" | "compartmentId">): string => compartmentId ?? id;

const defaultLimits = Limits.parse({});
const query = prepared((db) => db.select().from(agent));

/** `noteUse`: keeps that a secret goes out. */
type NoteUse = (db: Database, now: number, name: string, use: SecretUse) => void;

export const createIdentity = (db: Database, clock: Clock, env: RingEnv, noteUse: NoteUse) => {
  const known = new Remembered(db, () => {
    const row = query(db).get();
    if (!row) return undefined;
    // A config that was stored before a limit there was has its default.
    const config = { ...row.config, limits: { ...defaultLimits, ...row.config.limits } };
    return { ...row, config: withoutIdleTimeouts(config) };
  });

  return {
    /** `compartment`: of an agent's compartment, whose config and secrets are what its open mind answered. */
    create(id: string, workspaceId: string, config: AgentConfig, compartment?: CompartmentFacts): AgentRow {
      const now = clock.now();
      const row = { id, workspaceId, config, createdAt: now, updatedAt: now, secrets: {}, ...compartment };
      return known.writing().insert(agent).values(row).returning().get();
    },

    find: (): AgentRow | undefined => known.get(),

    /** The id of this mind of the agent. */
    mindId(): string {
      return mindOf(this.get());
    },

    /** Throws `not_found` for an object that is no agent. */
    get(): AgentRow {
      const row = this.find();
      if (!row) throw new ColloquyError("not_found", "there is no such agent");
      return row;
    },

    update(changes: Partial<Omit<AgentRow, "id" | "workspaceId" | "createdAt">>): void {
      const row = known.get();
      known.writing().update(agent).set(changes).run();
      // The config stays the object that it is: tools and models are made once for each.
      if (row && changes.config === undefined) known.set({ ...row, ...changes });
    },

    /** Changes what the agent runs by: its compartments are to have it too. */
    configure(changes: Partial<Pick<AgentRow, "config" | "secrets" | "updatedAt" | "suspended">>): void {
      this.update({ ...changes, settingsVersion: this.get().settingsVersion + 1 });
    },

    /**
     * A secret of the agent's workspace; undefined where there is none of that name. It lives only in memory. What it is
     * sent for is noted before it is answered; without a `use`, it is sent nowhere. Throws what its bounds do not allow.
     */
    async unsealSecret(name: string, use?: SecretUse): Promise<string | undefined> {
      const { id, workspaceId, secrets } = this.get();
      const sealed = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
      if (sealed === undefined || !use) return sealed && unseal(env, workspaceId, name, sealed);
      const opened = await unsealFor(env, workspaceId, name, sealed, { ...use, agentId: id });
      noteUse(db, clock.now(), name, use);
      return opened;
    },
  };
};
