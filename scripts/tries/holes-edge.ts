import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../api.ts";
import { startServer } from "../server.ts";
import { named, order, type Stage, type Tries } from "./holes-stage.ts";
import { until } from "./scene.ts";

/** Holes 9 and 10, over HTTP: what the page and its session are guarded by, and where requests go out to. */
const privateHosts =
  `127.0.0.1.nip.io 127-0-0-1.nip.io 7f000001.nip.io app.10.0.0.1.sslip.io 169.254.169.254.sslip.io localtest.me x.lvh.me lvh.me.
  api.default.svc api.default.svc.cluster.local kubernetes.default metadata.google.internal metadata router printer.local nas.lan host.docker.internal
  10.0.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 2130706433.nip.io １０.0.0.1 [::ffff:10.0.0.1] [fd00::1] [fe80::1]
  [64:ff9b::a00:1] [2002:a00:1::] 127.0.0.1.NIP.IO 127.0.0.1.xip.io A.10-0-0-1.Traefik.me 7f000001.c0a80001.rbndr.us make-127-0-0-1-rr.1u.ms
  127。0。0。1.nip。io 127.0.0.1%2enip.io ip6-localhost.local-ip.co localhost.localdomain 127.1.nip.io`
    .trim()
    .split(/\s+/);

const thisMachine =
  "127.0.0.1 localhost x.localhost localhost. 0x7f000001 0177.0.0.1 2130706433 127.1 [::1] [::ffff:127.0.0.1] １２７.0.0.1 0".split(
    " ",
  );
const signingSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** 10: requests that go out to private hosts. */
export const outgoing = async (stage: Stage, { attack }: Tries): Promise<void> => {
  const { http, key, own } = stage;
  const places: [string, (url: string) => object][] = [
    ["tool", (url) => ({ tools: [{ name: "t", description: "T", executionType: "gateway", execution: { url } }] })],
    [
      "server of an external tool",
      (url) => ({
        tools: [{ name: "t", description: "T", executionType: "external", execution: { url, secret: "SIGN" } }],
      }),
    ],
    ["MCP server", (url) => ({ mcp: { servers: [{ name: "m", url }] } })],
    ["model", (url) => ({ model: { provider: "openai-compatible", name: "m", baseUrl: url } })],
    ["embedder", (url) => ({ embedder: { provider: "openai-compatible", name: "m", baseUrl: url, dimensions: 8 } })],
  ];
  await http("PUT", "/v1/workspace/secrets/SIGN", { bearer: key, body: { value: signingSecret } });
  const take = async (configOf: (url: string) => object, hosts: readonly string[], asked = http, bearer = key) => {
    const taken: string[] = [];
    for (const host of hosts) {
      const body = { name: named("Out"), ...configOf(`https://${host}/x`) };
      if ((await asked("POST", "/v1/agents", { bearer, body })).status < 400) taken.push(host);
    }
    return taken;
  };
  for (const [what, configOf] of places) {
    await attack(10, `${privateHosts.length} names and spellings of private hosts: none as a ${what}`, async () => {
      const isSane = (await take(configOf, ["api.example.com"])).length === 1;
      return isSane ? take(configOf, privateHosts) : "a public host is refused too";
    });
  }
  await attack(10, "in production this machine by no spelling either", async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), "try-"));
    const keys = { ADMIN_KEY: "tried-by-hand", SIGNING_SECRET: "a signing secret, of at least 32 characters" };
    const server = await startServer({ dataDirectory, variables: { ...keys, RATE_LIMITS: "off" } });
    try {
      const operator = createApi(server.url, keys.ADMIN_KEY);
      const made = await operator.post<{ secretKey: string }>("/v1/workspaces", { name: "Production" });
      await createApi(server.url, made.secretKey).put("/v1/workspace/secrets/SIGN", { value: signingSecret });
      const asked: typeof http = async (method, path, { bearer, body } = {}) => {
        const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
        const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
        return { status: answer.status, text: await answer.text(), headers: answer.headers };
      };
      const taken: string[] = [];
      for (const [what, configOf] of places) {
        if ((await take(configOf, ["api.example.com"], asked, made.secretKey)).length === 0)
          taken.push(`no ${what} at all`);
        for (const host of await take(configOf, thisMachine, asked, made.secretKey)) taken.push(`${what} ${host}`);
      }
      return taken;
    } finally {
      await server.stop();
      rmSync(dataDirectory, { recursive: true, force: true });
    }
  });
  await attack(10, "a space's router, and an agent changed or imported later, neither", async () => {
    const host = "https://127.0.0.1.nip.io/v1";
    const model = { provider: "openai-compatible", name: "m", baseUrl: host };
    const agent = await stage.agent(named("Late"));
    const line = (await http("GET", `/v1/agents/${agent}/export`, { bearer: key })).text;
    const imported = line.replaceAll(stage.fake.baseUrl, host);
    const answers = [
      await http("POST", "/v1/spaces", { bearer: key, body: { name: "R", router: { model } } }),
      await http("PATCH", `/v1/agents/${agent}`, { bearer: key, body: { model } }),
      await http("POST", `/v1/imports?name=${named("Imp")}`, {
        bearer: key,
        headers: { "content-type": "application/x-ndjson" },
        body: imported,
      }),
    ];
    return answers.filter(({ status }) => status < 400).map(({ text }) => text.slice(0, 200));
  });
  await attack(
    10,
    "no tool, server or model follows a redirect to a private host or to this machine, nor a secret that names one",
    async () => {
      const targets = [
        `${own.url}/inside`,
        "https://127.0.0.1.nip.io/inside",
        "https://10.0.0.1/inside",
        "//localhost:1/inside",
        "http://[::1]:1/inside",
      ];
      await http("PUT", "/v1/workspace/secrets/HOST", { bearer: key, body: { value: "127.0.0.1.nip.io" } });
      await http("PUT", "/v1/workspace/secrets/PATH", { bearer: key, body: { value: "x@127.0.0.1.nip.io/" } });
      const tools = [
        ...targets.map((_, index) => ({ name: `go${index}`, url: `${own.url}/${index}` })),
        { name: "secret", url: `https://\${secret.HOST}/inside` },
        { name: "mixed", url: `https://a.example\${secret.PATH}` },
      ].map(({ name, url }) => ({
        name,
        description: "Goes",
        executionType: "gateway",
        visible: false,
        execution: { url, method: "GET" },
      }));
      // Some of these may be refused as they are set: then they cannot be called.
      const made = await Promise.all(
        tools.map(async (tool) =>
          (await http("POST", "/v1/agents", { bearer: key, body: { name: named("Try"), tools: [tool] } })).status < 400
            ? [tool]
            : [],
        ),
      );
      own.answer = async ({ path }) => ({
        status: 307,
        headers: { location: targets[Number(path.slice(1))] ?? `${own.url}/inside` },
      });
      const before = own.requests.length;
      const common = { description: "Goes", executionType: "external", visible: false, timeoutMs: 3000 };
      const served = { ...common, name: "served", execution: { url: `${own.url}/served`, secret: "SIGN" } };
      const agent = await stage.agent(named("Goer"), {
        tools: [...made.flat(), served],
        mcp: { servers: [{ name: "m", url: `${own.url}/mcp` }] },
      });
      const model = { provider: "openai-compatible", name: "m", baseUrl: `${own.url}/model` };
      const lost = await stage.agent(named("Lost"), { model });
      const ann = await stage.house.addPerson(named("Ann"));
      const space = await stage.space("Out", [ann.id, agent]);
      await stage.say(await stage.space("Lost", [ann.id, lost]), ann.token, "Hello");
      const calls = [...made.flat().map(({ name }) => name), "served"].map((name) => [[name, {}] as const]);
      await stage.handled(space, await stage.say(space, ann.token, order(...calls)), agent);
      const asked = () => own.requests.slice(before).map(({ path }) => path);
      const starts = ["/0", "/1", "/2", "/3", "/4", "/mcp", "/served", "/model"];
      const missing = () => starts.filter((start) => !asked().some((path) => path.startsWith(start)));
      await until("every request", async () => missing().length === 0).catch(() => undefined);
      // Its model would be asked again and again.
      await http("DELETE", `/v1/agents/${lost}`, { bearer: key });
      own.answer = async () => ({ body: {} });
      return [
        ...asked().filter((path) => path.includes("inside")),
        ...missing().map((path) => `${path} was not asked`),
      ];
    },
  );
};

/** 9: the page's session and headers. */
export const session = async (stage: Stage, { attack }: Tries): Promise<void> => {
  const { house, api, http, url, key } = stage;
  const [ada, eve] = [await house.addPerson(named("Ada")), await house.addPerson(named("Eve"))];
  const square = await stage.space("Square", [ada.id, eve.id]);
  const code = async (person: { link(): Promise<string> }) => (await person.link()).split("#sign-in=")[1] ?? "";
  const signIn = (body: unknown, headers: Record<string, string> = {}) =>
    http("POST", "/v1/session", { headers, body });
  const signed = await signIn({ code: await code(ada) }, { origin: url });
  const [cookie = ""] = (signed.headers.get("set-cookie") ?? "").split(";");
  const foreign: Record<string, string>[] = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `${url}1` },
    { origin: url.replace("127.0.0.1", "localhost") },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: url, "sec-fetch-site": "cross-site" },
    { origin: "https://evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
    { origin: "https://evil.example", forwarded: "host=evil.example" },
  ];
  await attack(9, "control: the cookie opens what its person may, from the page's own origin", async () => {
    const { status } = await http("GET", `/v1/spaces/${square}/messages`, { headers: { cookie, origin: url } });
    return status === 200 ? undefined : `${status} ${signed.text}`;
  });
  await attack(9, "the cookie counts for no other origin: reading, writing, sockets, events, session", async () => {
    const opened: string[] = [];
    for (const headers of foreign) {
      const all = { cookie, ...headers };
      const tries: [string, string, object?][] = [
        ["GET", `/v1/spaces/${square}/messages`],
        ["GET", "/v1/session"],
        ["POST", `/v1/spaces/${square}/messages`, { text: "forged" }],
        ["DELETE", "/v1/session"],
        ["GET", `/v1/spaces/${square}/events?cursor=0`],
      ];
      for (const [method, path, body] of tries) {
        const { status } = await http(method, path, { headers: all, ...(body && { body }) });
        if (status < 400) opened.push(`${method} ${path} ${JSON.stringify(headers)}`);
      }
      const line = await stage.socket(`/v1/spaces/${square}/stream`, all);
      if (line.refused === undefined) opened.push(`socket ${JSON.stringify(headers)}`);
      line.end();
    }
    return opened;
  });
  await attack(
    9,
    "a page elsewhere signs nobody in: not by fetch, a form, a GET, nor over a session that is there",
    async () => {
      const link = await code(eve);
      const answers = [
        ...(await Promise.all(foreign.map((headers) => signIn({ code: link, replace: true }, headers)))),
        await signIn(JSON.stringify({ code: link }), { "content-type": "text/plain" }),
        await signIn(`code=${link}`, { "content-type": "application/x-www-form-urlencoded" }),
        await signIn({ code: link }, { cookie, origin: url }),
        await http("GET", `/v1/session?code=${link}`, { headers: { origin: url } }),
      ];
      return answers.filter(({ headers }) => headers.has("set-cookie")).map(({ text }) => text);
    },
  );
  await attack(
    9,
    "the cookie's token is no bearer, no query and no other person's; signed out, it is nothing",
    async () => {
      const [, token = ""] = cookie.split("=");
      const mint = await http("POST", "/v1/tokens", { headers: { cookie, origin: url }, body: { entityId: ada.id } });
      const answers = [
        await http("GET", "/v1/spaces", { bearer: token }),
        await http("GET", `/v1/spaces/${square}/events?token=${token}`),
        await http("GET", "/v1/spaces", { headers: { cookie, origin: url, "x-entity-id": eve.id } }),
        await http("GET", "/v1/spaces", { headers: { cookie: `__Host-${cookie}`, origin: url } }),
        mint,
      ];
      const line = await stage.socket(`/v1/spaces/${square}/stream`, { cookie, origin: url });
      await http("DELETE", "/v1/session", { headers: { cookie, origin: url } });
      const after = await http("GET", "/v1/spaces", { headers: { cookie, origin: url } });
      const end = await until("end of the socket", async () => line.closed(), 45_000).catch(() => undefined);
      return [
        ...[...answers, after].filter(({ status }) => status < 400).map(({ text }) => text),
        ...(end ? [] : ["its socket lives"]),
      ];
    },
  );
  await attack(9, "the page allows no inline script, no other origin, no frame; it knows no #token", async () => {
    const page = await http("GET", "/", { headers: { accept: "text/html" } });
    const policy = page.headers.get("content-security-policy") ?? "";
    const wanted = [
      "connect-src 'self';",
      "script-src 'self';",
      "frame-ancestors 'none'",
      "default-src 'self'",
      "base-uri 'none'",
    ];
    return [
      ...wanted.filter((each) => !policy.includes(each)),
      ...(/unsafe-|wss?:|\*/.test(policy) ? [policy] : []),
      ...(/<script(?![^>]*src=)[^>]*>/.test(page.text) ? ["inline"] : []),
    ];
  });
  await attack(
    9,
    "answers are kept by nobody, refusals and what is not there too, and are what they say they are",
    async () => {
      const paths = [
        "/v1/spaces",
        `/v1/spaces/${square}/messages`,
        "/v1/session",
        "/v1/nothing",
        `/v1/spaces/${square}x`,
        "/v1/agents",
        "/v1/workspace/secrets",
        "/healthz",
      ];
      const answers = await Promise.all(
        paths.flatMap((path) =>
          [key, eve.token, "wrong", undefined].map(
            async (bearer) => [path, await http("GET", path, bearer === undefined ? {} : { bearer })] as const,
          ),
        ),
      );
      const kept = answers.filter(
        ([, { headers }]) =>
          headers.get("cache-control") !== "no-store" || headers.get("x-content-type-options") !== "nosniff",
      );
      const first = await http("GET", "/openapi.json");
      const again = await http("GET", "/openapi.json", {
        headers: { "if-none-match": first.headers.get("etag") ?? "" },
      });
      return [
        ...kept.map(([path]) => path),
        ...(again.status === 304 && /max-age/.test(first.headers.get("cache-control") ?? "") ? [] : ["/openapi.json"]),
      ];
    },
  );
  await attack(
    9,
    "what a person is called elsewhere shows to no co-member, in no route, frame or agent's input",
    async () => {
      const externalId = named("crm-");
      await api.patch(`/v1/entities/${ada.id}`, { externalId });
      const line = await stage.socket(`/v1/spaces/${square}/stream?token=${eve.token}&cursor=0`);
      await stage.say(square, ada.token, "hello");
      const paths = [
        "/v1/entities",
        "/v1/entities?type=human",
        `/v1/entities/${ada.id}`,
        `/v1/spaces/${square}`,
        "/v1/spaces",
        `/v1/spaces/${square}/messages`,
      ];
      const seen = await Promise.all(paths.map(async (path) => (await http("GET", path, { bearer: eve.token })).text));
      const own = (await http("GET", `/v1/entities/${ada.id}`, { bearer: ada.token })).text;
      line.end();
      return [
        ...[...seen, ...line.frames].filter((text) => text.includes(externalId)),
        ...(own.includes(externalId) ? [] : ["she does not see it herself"]),
      ];
    },
  );
};
