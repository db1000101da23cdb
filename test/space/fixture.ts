import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import type { EntityType } from "../../src/protocol/entity.ts";
import { type EntityPrincipal, type KeyPrincipal, neverEnds } from "../../src/protocol/principal.ts";
import type {
  AgentMessage,
  AgentToolCall,
  Delivery,
  EntityRef,
  IndexDelivery,
  SpaceRpc,
  ToolCallOutcome,
} from "../../src/protocol/rpc.ts";
import type { Release, RouterConfig, Space as SpaceView, WakePolicy } from "../../src/protocol/space.ts";
import { type Outcome, ok, unwrap } from "../../src/shared/errors.ts";
import { compartmentId, createIds } from "../../src/shared/ids.ts";
import type { Space } from "../../src/space/space.ts";
import { Workspace } from "../../src/workspace/workspace.ts";

export const ids = createIds(env.SIGNING_SECRET);

export const entity = (type: EntityType, name: string): EntityRef => ({ id: ids.mint("ent"), name, type });

/** Deliveries to each agent and workspace, by id, over the real RPC; and how an agent answers. */
export const deliveries = new Map<string, Delivery[]>();
export const followed = new Map<string, IndexDelivery[]>();
export const answers = new Map<string, (delivery: Delivery) => Promise<Outcome<{ cursor: number; changes?: true }>>>();

const Named = z.object({ ctx: z.object({ id: z.object({ name: z.string() }) }) });

/** Agents and workspaces that only record. An agent answers that it took everything, if `answers` says nothing else. */
export const recordReceivers = (): void => {
  vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, told) {
    const delivery: Delivery = JSON.parse(told);
    const { name } = Named.parse(this).ctx.id;
    deliveries.set(name, [...(deliveries.get(name) ?? []), delivery]);
    return (await answers.get(name)?.(delivery)) ?? ok({ cursor: delivery.cursor, changes: true });
  });
  vi.spyOn(Workspace.prototype, "follow").mockImplementation(async (delivery) => {
    const { workspaceId } = delivery.space;
    followed.set(workspaceId, [...(followed.get(workspaceId) ?? []), delivery]);
    return ok(null);
  });
  vi.spyOn(Workspace.prototype, "credentialUntil").mockResolvedValue(ok(neverEnds));
};

export const deliveredTo = (agent: EntityRef): Delivery[] => deliveries.get(agent.id) ?? [];

/** The texts that an agent was delivered, in order, each as often as it came. */
export const heardBy = (agent: EntityRef): (string | undefined)[] =>
  deliveredTo(agent).flatMap((delivery) => delivery.messages.map(({ message }) => message.text));

/** The texts that an agent took: what its cursor says that it has already, it ignores. */
export const takenBy = (agent: EntityRef): (string | undefined)[] => {
  let cursor = 0;
  return deliveredTo(agent).flatMap((delivery) => {
    const fresh = delivery.messages.filter(({ message }) => message.seq > cursor);
    cursor = Math.max(cursor, delivery.cursor);
    return fresh.map(({ message }) => message.text);
  });
};

/** The outcomes of its calls that an agent heard: each once, as its cursor says. */
export const answersTo = (agent: EntityRef): ToolCallOutcome[] => {
  let cursor = 0;
  return deliveredTo(agent).flatMap((delivery) => {
    const fresh = (delivery.answers ?? []).filter(({ seq }) => seq > cursor);
    cursor = Math.max(cursor, delivery.cursor);
    return fresh;
  });
};

export type House = {
  workspaceId: string;
  key: KeyPrincipal;
  space: SpaceView;
  /** The object, as the routes and the agents reach it: a new stub each time, since a crash breaks stubs. */
  readonly rpc: SpaceRpc & { fetch(request: Request): Promise<Response> };
  /** The same object, for what only tests do to it. */
  readonly stub: DurableObjectStub<Space>;
  as: (entity: EntityRef, admin?: boolean) => EntityPrincipal;
};

/** An agent's compartment for a confidential space, as one that is told of what is said there. */
export const compartmentOf = (agent: EntityRef, { space }: Pick<House, "space">): EntityRef => ({
  ...agent,
  id: compartmentId(ids, agent.id, space.id),
});

type Settings = {
  wakePolicy?: WakePolicy;
  createdBy?: EntityRef;
  router?: RouterConfig;
  confidential?: boolean;
  release?: Release;
};

/** A space of its own, in a workspace of its own. */
export const house = async (
  members: EntityRef[],
  { wakePolicy = "every_message", createdBy, ...more }: Settings = {},
): Promise<House> => {
  const workspaceId = ids.mint("wsp");
  const id = ids.mint("spc");
  const created = await env.SPACE.getByName(id).create({
    id,
    workspaceId,
    settings: { name: "Kitchen", wakePolicy, shareOrigin: "reference", ...more },
    members,
    createdBy: createdBy?.id,
  });
  const as = ({ id: entityId }: EntityRef, admin = false): EntityPrincipal => {
    return { kind: "entity", workspaceId, entityId, admin, expiresAt: Date.now() + 60_000 };
  };
  const key: KeyPrincipal = { kind: "key", workspaceId, keyId: ids.mint("key") };
  return {
    workspaceId,
    key,
    space: unwrap(created),
    get rpc() {
      return env.SPACE.getByName(id);
    },
    get stub() {
      return stubOf(id);
    },
    as,
  };
};

const stubOf = (id: string): DurableObjectStub<Space> => {
  const namespace: unknown = env.SPACE;
  return (namespace as DurableObjectNamespace<Space>).getByName(id);
};

/** Makes the log longer by this many renames, as a long life would have; the space begins anew, and reads them. */
export const grow = async (home: House, events: number): Promise<void> => {
  await runInDurableObject(home.stub, (_, state) => {
    const { id, name } = home.space.members?.[0] ?? { id: "", name: "" };
    state.storage.sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO log (seq, type, entity_id, message_count, frame)
       SELECT head.seq + i, 'member.renamed', ?2, head.message_count,
         json_object('type', 'member.renamed', 'cursor', head.seq + i, 'entityId', ?2, 'name', ?3)
       FROM n, (SELECT seq, message_count FROM log ORDER BY seq DESC LIMIT 1) AS head`,
      events,
      id,
      name,
    );
  });
  await evictDurableObject(home.stub);
};

/** Everybody was told: the object wakes for its stored timers only. */
export const settled = (home: House): Promise<void> =>
  vi.waitFor(() =>
    runInDurableObject(home.stub, async (_, { storage }) => {
      const { due } = storage.sql.exec("SELECT min(due_at) AS due FROM timers").one();
      expect(await storage.getAlarm()).toBe(due);
    }),
  );

/** An agent's message as its run would make it: the same `call` is the same message. */
export const said = ({ workspaceId, space }: House, agent: EntityRef, text: string, call = text): AgentMessage => {
  const runId = ids.deriveOwned("run", agent.id, "run");
  const messageId = ids.deriveOwned("msg", space.id, runId, call);
  return { workspaceId, agentId: agent.id, runId, messageId, text, root: { id: messageId, kind: "agent" } };
};

/** A tool call as its run would show it: the same `call` is the same message. */
export const called = (
  { workspaceId, space }: House,
  agent: EntityRef,
  call: string,
  more: Partial<AgentToolCall> = {},
): AgentToolCall => {
  const toolCallId = ids.deriveOwned("tc", agent.id, call);
  const messageId = ids.deriveOwned("msg", space.id, toolCallId);
  return {
    workspaceId,
    agentId: agent.id,
    runId: ids.deriveOwned("run", agent.id, "run"),
    messageId,
    toolCallId,
    name: "deploy",
    input: { version: "1.2" },
    status: "running",
    root: { id: messageId, kind: "agent" },
    ...more,
  };
};
