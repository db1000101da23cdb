import { type Standing, standingOf } from "../auth/verdicts.ts";
import type { Exposure } from "../protocol/agent-rpc.ts";
import { mayRead, type Principal, unreadable } from "../protocol/principal.ts";
import type { ImpersonatedApprovals } from "../protocol/workspace.ts";
import { ColloquyError, type ErrorCode, type Outcome, unwrap } from "../shared/errors.ts";
import { quote } from "../shared/quote.ts";
import { type HttpContext, spaceAt, workspaceOf } from "./http-context.ts";

const mostNames = 5;
const refusedForRights: ErrorCode[] = ["not_found", "forbidden", "not_a_member"];

const standingAt = (context: HttpContext, entityId: string): Promise<Standing | undefined> =>
  standingOf(workspaceOf(context), context.get("principal").workspaceId, entityId);

/**
 * Asks a space as the caller. The workspace is asked whether an entity is an admin only if the space refuses it. So
 * members' own work never touches the workspace.
 */
export const inSpace = async <T>(
  context: HttpContext,
  act: (principal: Principal) => Promise<Outcome<T>>,
): Promise<T> => {
  const principal = context.get("principal");
  const outcome = await act(principal);
  if (outcome.ok || principal.kind === "key" || !refusedForRights.includes(outcome.problem.code))
    return unwrap(outcome);
  const standing = await standingAt(context, principal.entityId);
  return unwrap(standing?.role === "admin" ? await act({ ...principal, admin: true }) : outcome);
};

/** Refuses who may not read what is said in a confidential space (C19): an admin who is no member only runs it. */
export const requireReaderOf = (space: Parameters<typeof mayRead>[0], principal: Principal): void => {
  if (!mayRead(space, principal)) throw new ColloquyError("forbidden", `${unreadable}.`);
};

/** Refuses to send words of confidential spaces elsewhere for who may not read each of them (C19). */
export const requireReaderOfAll = async (context: HttpContext, { spaces, fields }: Exposure): Promise<void> => {
  const { principal } = context.var;
  if (principal.kind === "key") return;
  const hidden: string[] = [];
  for (const id of spaces) {
    const found = await spaceAt(context, id).describe(principal);
    // One that was deleted has no words any more.
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    if (found.ok && !mayRead(found.value, principal)) hidden.push(quote(found.value.name));
  }
  if (hidden.length === 0) return;
  const names = hidden.length > mostNames ? [...hidden.slice(0, mostNames), "others"] : hidden;
  throw new ColloquyError(
    "forbidden",
    `What is said in ${names.join(", ")} would go elsewhere by these changes (${fields.join(", ")}): that takes a secret key, or an admin who is in each of these spaces. Join them first, where all see it, or leave that as it is.`,
  );
};

/** Has an agent do what may expose confidential spaces: it answers with those, and does it for who reads them all (C19). */
export const asReaderOfAll = async <T extends object>(
  context: HttpContext,
  act: (readable?: string[]) => Promise<T | Exposure>,
): Promise<T> => {
  const isExposure = (answer: T | Exposure): answer is Exposure => "fields" in answer;
  for (let readable: string[] | undefined = context.var.principal.kind === "key" ? undefined : []; ; ) {
    const answer = await act(readable);
    if (!isExposure(answer)) return answer;
    await requireReaderOfAll(context, answer);
    readable = answer.spaces;
  }
};

/** Whether the caller has the workspace's rights, as the workspace knows it now. */
export const mayOwn = async (context: HttpContext): Promise<boolean> => {
  const principal = context.get("principal");
  return principal.kind === "key" || (await standingAt(context, principal.entityId))?.role === "admin";
};

/** The entity that acts; a secret key has to say which. */
export const actingEntityId = ({ entityId }: Principal): string => {
  if (entityId !== undefined) return entityId;
  throw new ColloquyError("acting_entity_required", "A secret key acts here as an entity: send X-Entity-Id: ent_….");
};

/** Whether approvals by impersonated sessions count now: this one, and those that were given before it. */
export const impersonatedApprovals = async (context: HttpContext): Promise<ImpersonatedApprovals> =>
  unwrap(await workspaceOf(context).describe()).impersonatedApprovals;

/** Lets a person or a service speak and read. An agent does so through its runs only, so that it knows of it. */
export const requireParticipant = async (context: HttpContext): Promise<void> => {
  const principal = context.get("principal");
  const entityId = actingEntityId(principal);
  if (principal.kind === "entity" || (await standingAt(context, entityId))?.type !== "agent") return;
  throw new ColloquyError("forbidden", "An agent speaks and reads through its runs: act as a person or a service.");
};
