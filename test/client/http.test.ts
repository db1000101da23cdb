import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { createIds } from "../../src/shared/ids.ts";

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that answers as the test says: like a bad network, or like a proxy. */
const serve = async (listener: RequestListener): Promise<string> => {
  const listening = createServer(listener);
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const address = listening.address();
  return typeof address === "object" && address ? `http://127.0.0.1:${address.port}` : "";
};

const spaceId = createIds("a signing secret of at least 32 characters").mint("spc");

test("[S4] a response that breaks off in its body rejects with unavailable", async () => {
  const baseUrl = await serve((_, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write('{"items":[');
    setImmediate(() => response.destroy());
  });
  const client = createClient({ baseUrl, token: "t" });
  await expect(client.listSpaces()).rejects.toMatchObject({ code: "unavailable", retryable: true });
});

test("[S4] an HTML page in place of the response rejects with internal", async () => {
  const baseUrl = await serve((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in to this network</h1>");
  });
  const client = createClient({ baseUrl, token: "t" });
  await expect(client.listSpaces()).rejects.toMatchObject({ code: "internal" });
  await expect(client.getSpace(spaceId)).rejects.toMatchObject({ code: "internal" });
});

test("[S5] a failed token refresh rejects with unavailable, and the next request tries again", async () => {
  const baseUrl = await serve(({ headers }, response) => {
    if (headers.authorization === "Bearer fresh") response.writeHead(200).end('{"items":[],"nextCursor":null}');
    else response.writeHead(401).end();
  });
  let works = false;
  const refreshToken = async () => {
    if (works) return "fresh";
    throw new TypeError("fetch failed");
  };
  const client = createClient({ baseUrl, token: "old", refreshToken });
  await expect(client.listSpaces()).rejects.toMatchObject({ code: "unavailable", retryable: true });
  works = true;
  await expect(client.listSpaces()).resolves.toEqual({ items: [], nextCursor: null });
});
