import { expect, test } from "vitest";
import { boundsOf, resealed, seal, unseal } from "../../src/auth/sealing.ts";

const secret = { SIGNING_SECRET: "a signing secret of at least 32 characters" };

test("[S3] a secret is sealed so that only its own workspace and name open it", async () => {
  const sealed = await seal(secret, "wsp_a", "KEY", "s3cr3t — ü");
  expect(sealed).not.toContain("s3cr3t");
  expect(await unseal(secret, "wsp_a", "KEY", sealed)).toBe("s3cr3t — ü");
  await expect(unseal(secret, "wsp_b", "KEY", sealed)).rejects.toThrow();
  await expect(unseal(secret, "wsp_a", "OTHER", sealed)).rejects.toThrow();
  await expect(
    unseal({ SIGNING_SECRET: "another signing secret of 32 characters!!" }, "wsp_a", "KEY", sealed),
  ).rejects.toThrow();
});

test("[S3] the same secret never seals to the same text, and a changed text does not open", async () => {
  const [one, other] = await Promise.all([seal(secret, "w", "K", "same"), seal(secret, "w", "K", "same")]);
  expect(one).not.toBe(other);
  const [form, iv, body = ""] = one.split(".");
  const changed = `${form}.${iv}.${body.startsWith("A") ? "B" : "A"}${body.slice(1)}`;
  await expect(unseal(secret, "w", "K", changed)).rejects.toThrow();
  await expect(unseal(secret, "w", "K", "v0.x.y")).rejects.toThrow("unknown form");
});

test("[L9] where a secret may go is sealed with it: changed or left out, it does not open", async () => {
  const bounds = { hosts: ["api.example.com"] };
  const sealed = await seal(secret, "w", "K", "v", bounds);
  const wider = Buffer.from(JSON.stringify({ hosts: ["evil.example"] })).toString("base64url");
  const parts = sealed.split(".");
  expect(await unseal(secret, "w", "K", sealed)).toBe("v");
  for (const other of [parts.slice(0, 4), [...parts.slice(0, 4), wider]]) {
    await expect(unseal(secret, "w", "K", other.join("."))).rejects.toThrow();
  }
  const anew = await resealed({ ...secret, SIGNING_SECRETS: `n:${"n".repeat(32)}` }, "w", "K", sealed);
  expect(anew).not.toBe(sealed);
  expect(boundsOf(anew)).toEqual(bounds);
});
