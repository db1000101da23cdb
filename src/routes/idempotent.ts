import { createHash } from "node:crypto";
import type * as z from "zod";
import { seal, unseal } from "../auth/sealing.ts";
import type { OwnPrefix } from "../protocol/ids.ts";
import type { Principal } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { idempotencyHeader } from "./route-parts.ts";

/**
 * `Idempotency-Key`: the same request again gets the same answer and makes nothing twice. The workspace holds the
 * answers. Ids of what is made follow from caller and key, so a retry finds what a crash cut off.
 */
export const replayedHeader = "Idempotency-Replayed";

export type NewId = (prefix: OwnPrefix) => string;

/** A request, and how its answer is kept. `sealed`: it holds a secret, and is stored sealed. */
type Repeatable<Schema extends z.ZodType> = { body: unknown; schema: Schema; sealed?: boolean; status?: number };
/** Where its answer is kept: under the key, for the caller that `principal` names. */
type Place = { workspace: WorkspaceRpc; workspaceId: string; principal: string; key: string };

/** The caller, as what its requests are remembered under. */
export const nameOf = (principal: Principal): string =>
  principal.kind === "entity" ? `entity:${principal.entityId}` : `key:${principal.keyId}:${principal.entityId ?? ""}`;

/** Does `make` under a key, or answers what it made before, with the header that says so. */
export const doOnce = async <Schema extends z.ZodType>(
  context: HttpContext,
  { workspace, workspaceId, principal, key }: Place,
  { body, schema, sealed = false, status = 201 }: Repeatable<Schema>,
  make: () => Promise<z.output<Schema>>,
): Promise<z.output<Schema>> => {
  const { env } = context;
  const hash = createHash("sha256")
    .update(JSON.stringify(body ?? null))
    .digest("hex");
  // The mind that is asked belongs to the request. What is made in a compartment goes with its confidential space.
  const space = context.req.query("space");
  const bodyHash = space === undefined ? hash : `${hash} in /spaces/${space}/`;
  const { replay } = unwrap(await workspace.beginRequest({ principal, key, bodyHash }));
  if (replay) {
    context.header(replayedHeader, "true");
    return schema.parse(JSON.parse(sealed ? await unseal(env, workspaceId, key, replay.body) : replay.body));
  }
  const end = (how: { status: number; body: string } | { abandon: true }): Promise<unknown> =>
    workspace
      .endRequest({ principal, key, ...how })
      .catch((error: unknown) => log.error("idempotency.not-ended", error, { workspaceId }));
  try {
    const answer = await make();
    const text = JSON.stringify(answer);
    await end({ status, body: sealed ? await seal(env, workspaceId, key, text) : text });
    return answer;
  } catch (error) {
    await end({ abandon: true });
    throw error;
  }
};

const placeOf = (context: HttpContext): Place | undefined => {
  const { req, var: variables } = context;
  const header = req.header(idempotencyHeader);
  if (header === undefined) return undefined;
  const { workspaceId } = variables.principal;
  const key = `${req.method} ${req.path} ${header}`;
  return { workspace: workspaceOf(context), workspaceId, principal: nameOf(variables.principal), key };
};

/** The id that what is made under this request's key has; a new one without a key. */
export const idUnder = (context: HttpContext, prefix: OwnPrefix): string => {
  const { ids } = context.var;
  const place = placeOf(context);
  return place ? ids.derive(prefix, place.workspaceId, place.principal, place.key) : ids.mint(prefix);
};

/** `make`, once for each `Idempotency-Key` of this caller at this address; without one, each time. */
export const idempotently = <Schema extends z.ZodType>(
  context: HttpContext,
  request: Repeatable<Schema>,
  make: (newId: NewId) => Promise<z.output<Schema>>,
): Promise<z.output<Schema>> => {
  const place = placeOf(context);
  const makeOnce = (): Promise<z.output<Schema>> => make((prefix) => idUnder(context, prefix));
  return place ? doOnce(context, place, request, makeOnce) : makeOnce();
};

/** For an actor that knows its calls: with it, a repeated request changes nothing also where no answer was kept. */
export const callIdOf = (context: HttpContext, newId: NewId): string | undefined =>
  context.req.header(idempotencyHeader) === undefined ? undefined : newId("key");

/** No answer that is kept tells what is deleted at this request's address, or at another of them. */
export const forgetAnswers = async (context: HttpContext, path = context.req.path): Promise<unknown> =>
  unwrap(await workspaceOf(context).forgetAnswers(path.replace(/^\/v\d+/, "")));
