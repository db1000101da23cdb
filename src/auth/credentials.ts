/** What a request presents, before anything is believed. */
export type Credentials = { bearer: string | undefined; actingEntityId: string | undefined };

const bearerPattern = /^Bearer +(\S+) *$/i;
/** What a token looks like, and a key does not. */
export const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * `Authorization: Bearer …`, else `x-secret-key`, else, where `allowQueryToken` says so, `?token=`: browsers cannot
 * set headers on sockets and event sources, and tokens in other addresses would end in logs. Only what expires may
 * stand there: an entity's token, never a key.
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
