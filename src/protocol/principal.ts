/**
 * Who is calling, as the worker found out and tells the actors. The operator never reaches a space or an agent.
 * `entityId` of a key is the entity that it acts as (`X-Entity-Id`), already checked to be of its workspace.
 */
export type KeyPrincipal = { kind: "key"; workspaceId: string; keyId: string; entityId?: string };
/** An entity whose token was verified. `admin` is the workspace's word, asked only where a route needs it. */
export type EntityPrincipal = {
  kind: "entity";
  workspaceId: string;
  entityId: string;
  admin: boolean;
  /** Milliseconds since the epoch. */
  expiresAt: number;
};
export type Principal = KeyPrincipal | EntityPrincipal;

/** Whether the caller may do what a workspace's secret key may (keys and secrets aside). */
export const hasWorkspaceRights = (principal: Principal): boolean => principal.kind === "key" || principal.admin;
