import { env, exports } from "cloudflare:workers";
import * as z from "zod";
import { Agent } from "../../src/protocol/agent.ts";
import { Entity } from "../../src/protocol/entity.ts";
import { Message } from "../../src/protocol/message.ts";
import { Space } from "../../src/protocol/space.ts";
import { Key, Token, Workspace } from "../../src/protocol/workspace.ts";
import { createIds } from "../../src/shared/ids.ts";

/** The worker as the outside sees it: requests in, answers out. Everything here goes through HTTP. */

/** Ids of this deployment, for inventing what is well-formed and was never created. */
export const ids = createIds(env.SIGNING_SECRET);

export const adminKey = env.ADMIN_KEY ?? "";

export type Call = { method?: string; bearer?: string; as?: string; body?: unknown; headers?: Record<string, string> };

/** One request. `body` is sent as JSON; a string is sent as it is, with the JSON content type. */
export const call = (path: string, { method, bearer, as, body, headers }: Call = {}): Promise<Response> =>
  exports.default.fetch(`https://colloquy.test${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(as === undefined ? {} : { "x-entity-id": as }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });

/** The answer's JSON, parsed; a problem document is thrown as the test's failure. */
export const expectOk = async <Schema extends z.ZodType>(
  schema: Schema,
  answer: Promise<Response> | Response,
): Promise<z.infer<Schema>> => {
  const response = await answer;
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return schema.parse(JSON.parse(text));
};

/** A person or service that takes part, with its own token. */
export type Participant = { id: string; name: string; token: string };

export type House = Awaited<ReturnType<typeof openHouse>>;

/** A new workspace with its secret key, and what makes things in it. Each is alone: no test meets another's. */
export const openHouse = async (name = "House") => {
  const created = z.object({ workspace: Workspace, key: Key, secretKey: z.string() });
  const { workspace, key, secretKey } = await expectOk(
    created,
    call("/v1/workspaces", { bearer: adminKey, body: { name } }),
  );
  const post = <Schema extends z.ZodType>(schema: Schema, path: string, body: unknown, as?: string) =>
    expectOk(schema, call(path, { bearer: secretKey, body, ...(as === undefined ? {} : { as }) }));

  const token = async (entityId: string, expiresInSeconds = 3600): Promise<string> =>
    (await post(Token, "/v1/tokens", { entityId, expiresInSeconds })).token;

  const participant = async (fields: { type: string; name: string; role?: string }): Promise<Participant> => {
    const { entity } = await post(z.object({ entity: Entity }), "/v1/entities", fields);
    return { id: entity.id, name: entity.name, token: await token(entity.id) };
  };

  return {
    workspaceId: workspace.id,
    keyId: key.id,
    secretKey,
    token,
    person: (personName: string, role: "member" | "admin" = "member") =>
      participant({ type: "human", name: personName, role }),
    service: (serviceName: string) => participant({ type: "service", name: serviceName }),
    agent: async (config: Record<string, unknown>) =>
      (
        await post(z.object({ agent: Agent }), "/v1/agents", {
          model: { provider: "rehearsal", deltasPerSecond: 0 },
          ...config,
        })
      ).agent,
    space: async (spaceName: string, members: { id: string }[], settings: Record<string, unknown> = {}) =>
      (
        await post(z.object({ space: Space }), "/v1/spaces", {
          name: spaceName,
          members: members.map(({ id }) => ({ entityId: id })),
          ...settings,
        })
      ).space,
    /** Posts as a member, by its own token. */
    say: async (spaceId: string, speaker: Participant, text: string, fields: Record<string, unknown> = {}) =>
      (
        await expectOk(
          z.object({ message: Message }),
          call(`/v1/spaces/${spaceId}/messages`, { bearer: speaker.token, body: { text, ...fields } }),
        )
      ).message,
  };
};
