import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import {
  type AuthenticatedSockets,
  createAuthenticatedSockets,
  credentialName,
  credentialsUntil,
  type Session,
} from "../sockets/authenticated-sockets.ts";
import type { Timers } from "../timers/timers.ts";
import {
  keyProofAnswerMs,
  keyProofLeadMs,
  keyProofMs,
  maxSockets,
  maxSocketsPerMember,
  maxSocketsPerPerson,
} from "./bounds.ts";

export const socketsTimer = "sockets";

const Data = z.object({ entityId: z.string() });
type Data = z.infer<typeof Data>;

/** A member's session. From the turn in which the member is removed, its sockets are closed (S5). */
export type SpaceSession = Session<Data>;
export type SpaceSockets = AuthenticatedSockets<Data>;

/**
 * The sockets of a space's members. Those of a key close unless its workspace confirms again and again that it lives.
 * Those of a token or a session need one more confirmation: from then on the workspace tells when they end.
 */
export const createSockets = (
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "waitUntil" | "id">,
  { WORKSPACE }: Pick<Env, "WORKSPACE">,
  timers: Timers,
  clock: Clock,
): SpaceSockets =>
  createAuthenticatedSockets({
    ctx,
    timers,
    clock,
    timer: socketsTimer,
    data: Data,
    proofMs: keyProofMs,
    proofLeadMs: keyProofLeadMs,
    proofAnswerMs: keyProofAnswerMs,
    isTold: ({ kind }) => kind === "entity",
    proofName: ({ principal }) => credentialName(principal),
    prove: ({ principal }) =>
      credentialsUntil(WORKSPACE.getByName(principal.workspaceId), principal, ctx.id.toString()),
  });

/** Throws `unavailable` where there are too many sockets for one more of this member, opened by it itself or by a key. */
export const requireSocketRoom = (
  sockets: Pick<SpaceSockets, "size" | "all">,
  entityId: string,
  by: Principal["kind"] = "key",
): void => {
  if (sockets.size >= maxSockets) {
    const detail = `This space has ${maxSockets} sockets, which is the most (maxSockets): try later`;
    throw new ColloquyError("unavailable", detail);
  }
  let own = 0;
  let opened = 0;
  for (const { data, principal } of sockets.all()) {
    if (data.entityId !== entityId) continue;
    own += 1;
    if (by === "entity" && principal.kind === "entity") opened += 1;
  }
  if (opened >= maxSocketsPerPerson) {
    throw new ColloquyError(
      "unavailable",
      `You have opened ${maxSocketsPerPerson} sockets here, which is the most (maxSocketsPerPerson): close some first`,
    );
  }
  if (own >= maxSocketsPerMember) {
    const detail = `You have ${own} sockets here, which is the most (maxSocketsPerMember): close some first`;
    throw new ColloquyError("unavailable", detail);
  }
};
