import * as z from "zod";
import { entityId, keyId, workspaceId } from "./ids.ts";
import { KeyScope } from "./workspace.ts";

/**
 * The caller, as the worker authenticated it for the actors. The operator never reaches a space or an agent.
 * `entityId` of a key is the entity that it acts as (`X-Entity-Id`), already checked to be of its workspace.
 */
export const KeyPrincipal = z.object({
  kind: z.literal("key"),
  workspaceId,
  keyId,
  entityId: entityId.exactOptional(),
  /** Left out: `full`. */
  scopes: z.array(KeyScope).exactOptional(),
  /** When it ends, in milliseconds since the epoch; left out: when it is revoked. */
  expiresAt: z.number().exactOptional(),
  /** When the workspace was asked whether the key lives, in milliseconds since the epoch; left out: just now. */
  provenAt: z.number().exactOptional(),
});
export type KeyPrincipal = z.infer<typeof KeyPrincipal>;

/**
 * The conditions of an entity's token or session beside its signature: it holds while its workspace says that all of
 * them are met. `generation`: how often the entity had signed out everywhere when it was made; left out: never.
 */
export const Credential = z.object({
  entityId,
  generation: z.number().exactOptional(),
  /** The secret key by whose right it was made. */
  keyId: keyId.exactOptional(),
  /** The one who made it for the entity, if another did: it may talk, not approve. */
  impersonatedBy: entityId.exactOptional(),
  impersonatorGeneration: z.number().exactOptional(),
  sessionId: z.string().exactOptional(),
  /** The setting by which the workspace takes its own users' JWTs, where it is one or was made by one. */
  authId: z.string().exactOptional(),
});
export type Credential = z.infer<typeof Credential>;

/** An entity whose token was verified. `admin` is the workspace's word, asked only where a route needs it. */
export const EntityPrincipal = z.object({
  ...Credential.omit({ sessionId: true }).shape,
  kind: z.literal("entity"),
  workspaceId,
  /** It is a guest agent's program, which has its agent's runs and nothing else. */
  guest: z.literal(true).exactOptional(),
  admin: z.boolean(),
  /** Milliseconds since the epoch. */
  expiresAt: z.number(),
  /** As of a key. */
  provenAt: z.number().exactOptional(),
  /** The page's session, where it asks by its cookie; when the workspace was asked whether it lives. */
  session: z.object({ id: z.string(), provenAt: z.number() }).exactOptional(),
});
export type EntityPrincipal = z.infer<typeof EntityPrincipal>;

export const Principal = z.discriminatedUnion("kind", [KeyPrincipal, EntityPrincipal]);
export type Principal = z.infer<typeof Principal>;

/** A principal as JSON on its way from the worker to a space's `fetch`. The worker strips it from what comes in. */
export const principalHeader = "x-colloquy-principal";

/** Whether the caller may do what a workspace's secret key may (keys and secrets aside). */
export const hasWorkspaceRights = (principal: Principal): boolean => principal.kind === "key" || principal.admin;

/** Whether a secret key may do what its scopes, or no scope but `full`, stand for. */
export const hasScope = ({ scopes }: Pick<KeyPrincipal, "scopes">, ...meant: KeyScope[]): boolean =>
  scopes === undefined || scopes.some((scope) => scope === "full" || meant.includes(scope));

/** The conditions of an entity's credential, as its workspace is asked. */
export const credentialOf = (held: Omit<Credential, "sessionId"> & { session?: { id: string } }): Credential => {
  const { entityId, generation, keyId, impersonatedBy, impersonatorGeneration, session, authId } = held;
  return {
    entityId,
    ...(generation !== undefined && { generation }),
    ...(keyId !== undefined && { keyId }),
    ...(impersonatedBy !== undefined && { impersonatedBy }),
    ...(impersonatorGeneration !== undefined && { impersonatorGeneration }),
    ...(session && { sessionId: session.id }),
    ...(authId !== undefined && { authId }),
  };
};

/** Until when a credential holds that nothing ends. */
export const neverEnds = Number.MAX_SAFE_INTEGER;

/** The maker of a token or a link: a secret key, or an entity by its credential. */
export type Maker = Credential | { keyId: string };

export const makerOf = (principal: Principal): Maker =>
  principal.kind === "key" ? { keyId: principal.keyId } : credentialOf(principal);

/** Who makes a session for another entity. Those that an impersonated one makes name that maker too: no mark is lost. */
export const impersonatorOf = (principal: Principal, entityId: string): string | undefined => {
  if (principal.kind === "key") return undefined;
  return principal.impersonatedBy ?? (principal.entityId === entityId ? undefined : principal.entityId);
};

/** The conditions, beside the entity itself, of a credential that the principal makes for it. */
export const madeBy = (principal: Principal, entityId: string) => {
  const { keyId } = principal;
  const authId = principal.kind === "entity" ? principal.authId : undefined;
  const hung = { ...(keyId !== undefined && { keyId }), ...(authId !== undefined && { authId }) };
  const impersonatedBy = impersonatorOf(principal, entityId);
  if (principal.kind === "key" || impersonatedBy === undefined) return hung;
  const generation = principal.impersonatedBy === undefined ? principal.generation : principal.impersonatorGeneration;
  return { ...hung, impersonatedBy, ...(generation !== undefined && { impersonatorGeneration: generation }) };
};

/** The people of a session. It reads a confidential space only while all of them are members. */
export const readersOf = ({ entityId, impersonatedBy }: EntityPrincipal): string[] => [
  entityId,
  ...(impersonatedBy === undefined ? [] : [impersonatedBy]),
];

/**
 * Whether the caller reads a confidential space as one of its members. In a session that somebody made for a member, both
 * have to be: else an admin would read by a session for anybody (C19).
 */
export const readsAsMember = (principal: Principal, isMember: (entityId: string) => boolean): boolean => {
  if (principal.kind === "entity") return readersOf(principal).every(isMember);
  return principal.entityId !== undefined && isMember(principal.entityId);
};

type ReadSpace = { confidential?: boolean | undefined; members?: readonly { id: string }[] | undefined };

/** Whether who may see the space also reads what is said there: in a confidential one, its members and secret keys. */
export const mayRead = ({ confidential, members = [] }: ReadSpace, principal: Principal): boolean =>
  !confidential || principal.kind === "key" || readsAsMember(principal, (id) => members.some((one) => one.id === id));

export const unreadable =
  "Only members of a confidential space and a secret key read it, and a session that somebody made for a member only where both are: join it first";
