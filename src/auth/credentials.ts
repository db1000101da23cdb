import { sameText } from "./same-text.ts";

/** The credentials of a request, not yet verified. */
export type Credentials = { bearer: string | undefined; actingEntityId: string | undefined };

const bearerPattern = /^Bearer +(\S+) *$/i;
/** The form of a token; no key has it. */
export const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * `Authorization: Bearer …`, else `x-secret-key`, else `?token=` where `allowQueryToken` is set. Browsers cannot set
 * headers on sockets and event sources; tokens in other addresses would end in logs. A query holds only what expires: an
 * entity's token, never a key.
 */
export const credentialsOf = (request: Request, allowQueryToken: boolean): Credentials => {
  const { headers } = request;
  const actingEntityId = headers.get("x-entity-id")?.trim() || undefined;
  const authorization = headers.get("authorization");
  if (authorization !== null) return { bearer: bearerPattern.exec(authorization)?.[1], actingEntityId };
  const secretKey = headers.get("x-secret-key")?.trim();
  if (secretKey) return { bearer: secretKey.startsWith("sk_") ? secretKey : undefined, actingEntityId };
  const token = allowQueryToken ? new URL(request.url).searchParams.get("token") : null;
  return { bearer: token && tokenPattern.test(token) ? token : undefined, actingEntityId };
};

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && sameText(adminKey, presented);
