import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, test } from "vitest";
import { call, ids, openHouse } from "../support/house.ts";
import { connect } from "./connect.ts";

const metadata = "/.well-known/oauth-protected-resource/mcp";
const origin = "https://colloquy.test";

test("[M6] a 401 of /mcp says where the metadata is, which names the workspace's issuer", async () => {
  const house = await openHouse();
  const [{ privateKey, publicKey }, issuer] = [await generateKeyPair("ES256"), "https://issuer.example"];
  const setting = {
    jwks: { keys: [await exportJWK(publicKey)] },
    issuer,
    audience: "colloquy",
    firstSight: { role: "member" },
  };
  const named = `?workspace=${house.workspaceId}`;
  const bare = { resource: `${origin}/mcp`, bearer_methods_supported: ["header"] };
  for (const query of ["", named, `?workspace=${ids.mint("wsp")}`]) {
    const answered: object = await (await call(metadata + query)).json();
    expect(answered).toMatchObject({ ...bare, resource: `${origin}/mcp${query}` });
    expect(answered).not.toHaveProperty("authorization_servers");
  }
  await call("/v1/workspace/auth", { method: "PUT", bearer: house.secretKey, body: setting });
  const refused = await call(`/mcp${named}`, { body: {} });
  expect(refused.status).toBe(401);
  const challenge = refused.headers.get("www-authenticate") ?? "";
  const [, address = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
  expect(address).toBe(`${origin}${metadata}${named}`);
  const answered: object = await (await call(address.slice(origin.length))).json();
  expect(answered).toMatchObject({ resource: `${origin}/mcp${named}`, authorization_servers: [issuer] });
  const wrong = await call("/mcp", { bearer: "a.b.c", body: {} });
  expect(wrong.headers.get("www-authenticate")).toContain('error="invalid_token"');

  const jwt = await new SignJWT({ name: "Mona" })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject("mona")
    .setIssuer(issuer)
    .setAudience("colloquy")
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey);
  const assistant = await connect(jwt, "2026-07-28", named);
  expect((await assistant.call("list_spaces")).json.items).toEqual([]);
});

test("[M6] a token in an address is none, and the operator has no tools", async () => {
  const house = await openHouse();
  const { token } = await house.person("Mona");
  expect((await call(`/mcp?token=${token}`, { body: {} })).status).toBe(401);
});
