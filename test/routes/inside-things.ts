import { env } from "cloudflare:workers";
import { expect, vi } from "vitest";
import * as z from "zod";
import { Endpoint } from "../../src/protocol/endpoint.ts";
import { Key } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, expectOk, type House, type Participant } from "../support/house.ts";

/** Things inside agents and spaces that really exist: the right to see them changes the answer. */
const Runs = z.object({ items: z.array(z.object({ id: z.string(), status: z.string() })) });

const Messages = z.object({ items: z.array(z.object({ id: z.string() })) });

/** A run of the agent that is over. */
export const endedRun = async (house: House, speaker: Participant, agentId: string): Promise<string> => {
  const { id } = await house.space("Run", [speaker, { id: agentId }]);
  await house.say(id, speaker, "Hello");
  return vi.waitFor(
    async () => {
      const { items } = await expectOk(Runs, call(`/v1/agents/${agentId}/runs`, { bearer: house.secretKey }));
      const run = items.find(({ status }) => status === "completed");
      if (!run) throw new Error("no run has ended");
      return run.id;
    },
    { timeout: 10_000 },
  );
};

/** An event that waits in the inbox of an agent whose budget allows it nothing. */
export const waitingEvent = async (house: House): Promise<{ agentId: string; eventId: string }> => {
  const { id: agentId } = await house.agent({ name: "Broke", limits: { maxTokensPerDay: 1000 } });
  const body = { serviceName: "jira", payload: 1 };
  const triggered = call(`/v1/agents/${agentId}/trigger`, { bearer: house.secretKey, body });
  return { agentId, ...(await expectOk(z.object({ eventId: z.string() }), triggered)) };
};

export const archivedFact = async (house: House, agentId: string): Promise<string> => {
  const body = { content: "A fact" };
  const archived = call(`/v1/agents/${agentId}/archival`, { bearer: house.secretKey, body });
  return (await expectOk(z.object({ id: z.string() }), archived)).id;
};

/** A message that an agent sent in one space because it was asked to in another, and the one that it answers. */
export const carriedMessage = async (
  house: House,
  asker: Participant,
  agentId: string,
  others: { id: string }[] = [],
): Promise<{ spaceId: string; messageId: string; sourceId: string; asked: string }> => {
  const [source, target] = [
    await house.space("Source", [asker, { id: agentId }]),
    await house.space("Target", [{ id: agentId }, ...others]),
  ];
  const { id: asked } = await house.say(source.id, asker, "Tell Target that the tea is ready");
  return vi.waitFor(
    async () => {
      const address = `/v1/spaces/${target.id}/messages`;
      const { items } = await expectOk(Messages, call(address, { bearer: house.secretKey }));
      const [said] = items;
      if (!said) throw new Error("nothing was told");
      return { spaceId: target.id, messageId: said.id, sourceId: source.id, asked };
    },
    { timeout: 10_000 },
  );
};

/** A message that its space's router has decided about: it is asked of more than two members, who are to be addressed. */
export const routedMessage = async (
  house: House,
  speaker: Participant,
  members: { id: string }[],
): Promise<{ spaceId: string; messageId: string }> => {
  const router = { model: { provider: "rehearsal" } };
  const { id: spaceId } = await house.space("Routed", members, { router, wakePolicy: "addressed" });
  const { id: messageId } = await house.say(spaceId, speaker, "Who knows?");
  const routing = `/v1/spaces/${spaceId}/messages/${messageId}/routing`;
  await vi.waitFor(async () => expect((await call(routing, { bearer: house.secretKey })).status).toBe(200), {
    timeout: 10_000,
  });
  return { spaceId, messageId };
};

export const newHook = async ({ secretKey: bearer }: House, agentId: string): Promise<string> => {
  const body = { scheme: "header", name: "monitor" };
  const opened = call(`/v1/agents/${agentId}/hooks`, { bearer, body });
  return (await expectOk(z.object({ hookId: z.string() }), opened)).hookId;
};

/** A key in the place of those that the calls before have left: a workspace has few. */
export const newKey = async ({ secretKey: bearer, keyId }: House): Promise<string> => {
  const path = "/v1/workspace/keys";
  const { items } = await expectOk(z.object({ items: z.array(Key) }), call(path, { bearer }));
  const left = items.filter(({ id, name }) => id !== keyId && name !== "Kept");
  await Promise.all(left.map(({ id }) => call(`${path}/${id}`, { bearer, method: "DELETE" })));
  return (await expectOk(z.object({ key: Key }), call(path, { bearer, body: {} }))).key.id;
};

/** An endpoint whose object is there, in the place of those before. */
export const newEndpoint = async ({ secretKey: bearer, workspaceId }: House, body: object): Promise<string> => {
  const path = "/v1/workspace/endpoints";
  const { items } = await expectOk(z.object({ items: z.array(Endpoint) }), call(path, { bearer }));
  await Promise.all(items.map(({ id }) => call(`${path}/${id}`, { bearer, method: "DELETE" })));
  const { endpoint } = await expectOk(z.object({ endpoint: Endpoint }), call(path, { bearer, body }));
  await vi.waitFor(async () => unwrap(await env.ENDPOINT.getByName(endpoint.id).forgetAnswers(workspaceId)));
  return endpoint.id;
};
