import { z } from "zod";
import { entityId, workspaceId } from "../protocol/ids.ts";

const Claims = z.object({ sub: entityId, wsp: workspaceId, exp: z.number() });

/** Who a token says its bearer is. Not verified: only the server can, this is for showing. */
export type TokenClaims = { entityId: string; workspaceId: string; expiresAt: number };

const decodeBase64Url = (text: string): string => {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0),
  );
  return new TextDecoder().decode(bytes);
};

/** The claims of an entity's token, or null if the text is no such token. `expiresAt` is in milliseconds. */
export const readToken = (token: string): TokenClaims | null => {
  const payload = token.split(".")[1];
  if (payload === undefined) return null;
  try {
    const claims = Claims.safeParse(JSON.parse(decodeBase64Url(payload)));
    if (!claims.success) return null;
    return {
      entityId: claims.data.sub,
      workspaceId: claims.data.wsp,
      expiresAt: claims.data.exp * 1000,
    };
  } catch {
    return null; // not base64, or not JSON: whatever it is, it is no token
  }
};
