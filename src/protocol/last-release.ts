import { isLacking, type Outcome, ok, refuse, unwrap } from "../shared/errors.ts";
import type { AuditNote } from "./audit.ts";
import type { LimitsInUse } from "./limits.ts";
import { type Credential, neverEnds } from "./principal.ts";
import type { WorkspaceRpc } from "./rpc.ts";
import { noTokensOfAgents } from "./workspace.ts";

/**
 * Asks a workspace that may still be an object of the last release (L14) what requests of that release depend on. One
 * that lacks the method is asked what it knows: no generation, no scope, no issuer and no limit.
 */
const unlessLacking = async <Value>(asked: Promise<Value>, ofBefore: () => Promise<Value>): Promise<Value> => {
  try {
    return await asked;
  } catch (error) {
    if (isLacking(error)) return ofBefore();
    throw error;
  }
};

export type CredentialRpc = Pick<WorkspaceRpc, "credentialUntil" | "standing" | "keyLives" | "sessionLives">;

/** As the workspace's own `credentialUntil`. */
export const credentialUntil = (
  workspace: CredentialRpc,
  credential: Credential,
  socketAt?: string,
): Promise<Outcome<number>> =>
  unlessLacking(workspace.credentialUntil(credential, socketAt), async () => {
    const { entityId, keyId, sessionId, impersonatedBy, authId } = credential;
    const asked: Promise<Outcome<boolean>>[] = [];
    const standsAs = async (id: string, isRight: (role: string) => boolean): Promise<Outcome<boolean>> => {
      const standing = await workspace.standing(id);
      return standing.ok ? ok(isRight(standing.value.role)) : standing;
    };
    asked.push(standsAs(entityId, () => true));
    if (impersonatedBy !== undefined) asked.push(standsAs(impersonatedBy, (role) => role === "admin"));
    if (keyId !== undefined) asked.push(workspace.keyLives(keyId));
    if (sessionId !== undefined) asked.push(workspace.sessionLives(sessionId));
    const answers = await Promise.all(asked);
    const refused = answers.find((answer) => !answer.ok);
    if (refused && !refused.ok) return refused;
    const holds = authId === undefined && answers.every((answer) => answer.ok && answer.value);
    return ok(holds ? neverEnds : 0);
  });

/** As the workspace's own `admitToken`, of what anybody may be given. */
export const admitToken = (
  workspace: Pick<WorkspaceRpc, "admitToken" | "resolve">,
  ...[entityId, by, minter, isGuest]: Parameters<WorkspaceRpc["admitToken"]>
): Promise<Outcome<{ generation: number }>> =>
  unlessLacking(workspace.admitToken(entityId, by, minter, isGuest), async () => {
    const resolved = await workspace.resolve([entityId]);
    if (!resolved.ok) return resolved;
    const isAgent = resolved.value.some(({ type }) => type === "agent");
    return isAgent ? refuse("unknown_reference", noTokensOfAgents) : ok({ generation: 0 });
  });

/** As the workspace's own `limits`. One of the last release knows none, and does not say what is used. */
export const limitsOf = (workspace: Pick<WorkspaceRpc, "limits">): Promise<Outcome<Partial<LimitsInUse>>> =>
  unlessLacking<Outcome<Partial<LimitsInUse>>>(workspace.limits(), async () => ok({}));

/** As the workspace's own `noteAudit`, of what somebody reads. One of the last release has no audit log. */
export const noteReading = async (workspace: Pick<WorkspaceRpc, "noteAudit">, note: AuditNote): Promise<void> => {
  unwrap(await unlessLacking<Outcome<null>>(workspace.noteAudit(note), async () => ok(null)));
};
