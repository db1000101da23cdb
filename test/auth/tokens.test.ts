import { SignJWT, UnsecuredJWT } from "jose";
import { expect, test } from "vitest";
import { mintToken, verifyToken } from "../../src/auth/tokens.ts";
import { createIds, deriveKey } from "../../src/shared/ids.ts";

const secret = "a signing secret of at least 32 characters";
const ids = createIds(secret);
const workspaceId = ids.mint("wsp");
const entityId = ids.mint("ent");
const now = 1_771_426_255_250;
const keyOf = (workspace: string): Uint8Array => deriveKey(secret, `entity-token:${workspace}`);

const verify = (token: string, at = now) => verifyToken({ SIGNING_SECRET: secret }, ids, token, at);
const minted = () =>
  mintToken({ SIGNING_SECRET: secret }, { workspaceId, entityId, issuedAt: now, expiresAt: now + 1000 });
const forged = (claims: Record<string, unknown>, alg = "HS256", key = keyOf(workspaceId)) =>
  new SignJWT({ wsp: workspaceId, sub: entityId, exp: now / 1000 + 60, ...claims })
    .setProtectedHeader({ alg })
    .sign(key);

test("[S5] a token is valid until the millisecond of its expiry", async () => {
  const token = await minted();
  expect(await verify(token)).toEqual({ workspaceId, entityId, expiresAt: now + 1000 });
  expect(await verify(token, now + 999)).toMatchObject({ entityId });
  await expect(verify(token, now + 1000)).rejects.toMatchObject({ code: "token_expired" });
  await expect(verify(token, now + 86_400_000)).rejects.toMatchObject({ code: "token_expired" });
});

test("[S5] a token with another signature is refused", async () => {
  const other = ids.mint("wsp");
  const tokens = [
    "nonsense",
    "a.b.c",
    await forged({}, "HS384"),
    await forged({ wsp: other }),
    await forged({}, "HS256", keyOf(other)),
    await forged({ wsp: "wsp_invented" }),
    await forged({ wsp: undefined }),
    await forged({ sub: undefined }),
    await forged({ exp: undefined }),
    await forged({ sub: "ent_invented" }),
    new UnsecuredJWT({ wsp: workspaceId, sub: entityId }).setExpirationTime("1h").encode(),
    `${await minted()}x`,
  ];
  for (const token of tokens) await expect(verify(token), token).rejects.toMatchObject({ code: "unauthorized" });
});
