import { createHash } from "node:crypto";
import type { Context } from "hono";
import type { z } from "zod";
import { open, seal } from "../auth/sealing.ts";
import type { OwnPrefix } from "../protocol/ids.ts";
import type { Principal } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { type House, workspaceOf } from "./house.ts";
import { idempotencyHeader } from "./route-parts.ts";

/**
 * `Idempotency-Key`: the same request again gets the same answer and makes nothing twice. The workspace holds the
 * answers; ids of what is made follow from caller and key, so that what a crash cut off is found again.
 */
export const replayedHeader = "Idempotency-Replayed";

export type NewId = (prefix: OwnPrefix) => string;

export const hashOfBody = (body: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify(body ?? null))
    .digest("hex");

/** The caller, as what its requests are remembered under. */
export const nameOf = (principal: Principal): string =>
  principal.kind === "entity" ? `entity:${principal.entityId}` : `key:${principal.keyId}:${principal.entityId ?? ""}`;

type Stored<Schema extends z.ZodType> = {
  workspace: WorkspaceRpc;
  workspaceId: string;
  principal: string;
  key: string;
  body: unknown;
  schema: Schema;
  /** The answer holds a secret: it is stored sealed. */
  sealed: boolean;
  status: number;
};

/** Does `make` under a key, or answers what it made before, with the header that says so. */
export const doOnce = async <Schema extends z.ZodType>(
  context: Context<House>,
  stored: Stored<Schema>,
  make: () => Promise<z.infer<Schema>>,
): Promise<z.infer<Schema>> => {
  const { workspace, workspaceId, principal, key, schema } = stored;
  const secret = context.env.SIGNING_SECRET;
  const begun = unwrap(await workspace.beginRequest({ principal, key, bodyHash: hashOfBody(stored.body) }));
  if (begun.replay) {
    const { body } = begun.replay;
    context.header(replayedHeader, "true");
    return schema.parse(JSON.parse(stored.sealed ? await open(secret, workspaceId, key, body) : body));
  }
  const end = (how: { status: number; body: string } | { abandon: true }): Promise<unknown> =>
    workspace
      .endRequest({ principal, key, ...how })
      .catch((error: unknown) => log.error("idempotency.not-ended", error, { workspaceId }));
  try {
    const answer = await make();
    const text = JSON.stringify(answer);
    await end({ status: stored.status, body: stored.sealed ? await seal(secret, workspaceId, key, text) : text });
    return answer;
  } catch (error) {
    await end({ abandon: true });
    throw error;
  }
};

/** The id that what is made under this request's key has; a new one without a key. Of a body that is read as it comes. */
export const idUnder = (context: Context<House>, prefix: OwnPrefix): string => {
  const { ids, principal } = context.var;
  const header = context.req.header(idempotencyHeader);
  if (header === undefined) return ids.mint(prefix);
  return ids.derive(prefix, principal.workspaceId, nameOf(principal), keyOf(context, header));
};

const keyOf = ({ req }: Context<House>, header: string): string => `${req.method} ${req.path} ${header}`;

/** `make`, once for each `Idempotency-Key` of this caller at this address; without one, each time. */
export const idempotently = <Schema extends z.ZodType>(
  context: Context<House>,
  request: { body: unknown; schema: Schema; sealed?: boolean; status?: number },
  make: (newId: NewId) => Promise<z.infer<Schema>>,
): Promise<z.infer<Schema>> => {
  const { ids, principal } = context.var;
  const header = context.req.header(idempotencyHeader);
  if (header === undefined) return make((prefix) => ids.mint(prefix));
  const { workspaceId } = principal;
  const name = nameOf(principal);
  const key = keyOf(context, header);
  const stored: Stored<Schema> = {
    workspace: workspaceOf(context),
    workspaceId,
    principal: name,
    key,
    body: request.body,
    schema: request.schema,
    sealed: request.sealed ?? false,
    status: request.status ?? 201,
  };
  return doOnce(context, stored, () => make((prefix) => ids.derive(prefix, workspaceId, name, key)));
};

/** For an actor that knows its calls: with it, a repeated request changes nothing also where no answer was kept. */
export const callIdOf = (context: Context<House>, newId: NewId): string | undefined =>
  context.req.header(idempotencyHeader) === undefined ? undefined : newId("key");
