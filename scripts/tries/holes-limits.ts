import { setTimeout as wait } from "node:timers/promises";
import { named, type OwnServer, order, type Stage, type Tries } from "./holes-stage.ts";
import { until } from "./scene.ts";

/** Holes 6, 7 and 8, over HTTP: what one person, one tenant or one chain can use up of what is everybody's. */
/** 6: one tenant's pattern holds up another's calls. */
export const patterns = async (stage: Stage, { attack }: Tries): Promise<void> => {
  const { house, http } = stage;
  const eve = await house.addPerson(named("Evil"));
  const slow = async (work: () => Promise<unknown>): Promise<number> => {
    let isOver = false;
    let worst = 0;
    const watch = async (): Promise<void> => {
      while (!isOver) {
        const from = performance.now();
        // One that never comes was waited for too.
        await http("GET", "/healthz", { patienceMs: 60_000 }).catch(() => undefined);
        worst = Math.max(worst, performance.now() - from);
      }
    };
    const watching = watch();
    await work().finally(() => {
      isOver = true;
    });
    await watching;
    return Math.round(worst);
  };
  const a = (count: number) => "a".repeat(count);
  const doubled = Object.fromEntries(
    Array.from({ length: 22 }, (_, level) => [
      `d${level}`,
      level === 0
        ? { type: "string" }
        : { allOf: [{ $ref: `#/$defs/d${level - 1}` }, { $ref: `#/$defs/d${level - 1}` }] },
    ]),
  );
  const schemas: [string, object, object][] = [
    ["^a*a*a*a*a*b$", { properties: { t: { pattern: "^a*a*a*a*a*b$" } } }, { t: a(400) }],
    ["(a+)+$", { properties: { t: { pattern: "^(a+)+$" } } }, { t: `${a(60_000)}!` }],
    ["patternProperties", { patternProperties: { "^(a|a)*(a|a)*$": { type: "number" } } }, { [`${a(20_000)}!`]: 1 }],
    ["propertyNames", { propertyNames: { pattern: "^(a?){200}a{200}$" } }, { [a(20_000)]: 1 }],
    ["references that double", { $defs: doubled, properties: { t: { $ref: "#/$defs/d21" } } }, { t: "a" }],
    [
      "uniqueItems",
      { properties: { t: { uniqueItems: true } } },
      { t: Array.from({ length: 8000 }, (_, index) => ({ index })) },
    ],
    [
      "a format",
      { properties: { t: { format: "uri" }, u: { format: "email" }, v: { format: "url" } } },
      { t: `http://${a(50_000)}`, u: `${a(50_000)}@`, v: `http://${"a-".repeat(30_000)}` },
    ],
    ["(a{1000}){1000}", { properties: { t: { pattern: "(a{1000}){1000}" } } }, { t: a(1000) }],
  ];
  for (const [what, schema, input] of schemas) {
    await attack(6, `a tool's schema stops nobody else for a second: ${what}`, async () => {
      const name = named("Judge");
      const inputSchema = { type: "object", ...schema };
      const tool = { name: "weigh", description: "Weighs", executionType: "internal", inputSchema };
      const stalled = await slow(async () => {
        const made = await http("POST", "/v1/agents", {
          bearer: stage.key,
          body: {
            name,
            continuity: "timeline",
            model: { provider: "openai-compatible", name, baseUrl: stage.fake.baseUrl },
            tools: [tool],
            limits: { maxTokensPerRun: 1_000_000 },
          },
        });
        if (made.status >= 400) return;
        const { agent } = JSON.parse(made.text) as { agent: { id: string } };
        await http("POST", `/v1/agents/${agent.id}/trigger`, {
          bearer: stage.key,
          body: { serviceName: "s", payload: order([["weigh", input]]) },
        });
        await until("end", async () => {
          const { text } = await http("GET", `/v1/agents/${agent.id}/runs`, { bearer: stage.key });
          return /"status":"(completed|failed)"/.test(text) && /"name":"weigh"/.test(text);
        });
      });
      return stalled > 1000 ? `somebody else waited ${stalled} ms` : undefined;
    });
  }
  await attack(6, "a person's own pattern, in an edit of a shared block, stops nobody either", async () => {
    const agent = await stage.agent(named("Scribe"));
    const cell = await stage.space("Cell", [eve.id, agent]);
    await stage.api.post(`/v1/agents/${agent}/blocks`, {
      label: "notes",
      type: "core",
      charLimit: 50_000,
      content: `${a(20_000)}!`,
    });
    await stage.api.put(`/v1/agents/${agent}/blocks/notes/spaces/${cell}`, { permission: "ReadWrite" });
    const body = { operations: [{ op: "replace_text", old: "^(a+)+(a+)+(a|a)*$", new: "", mode: "regex" }] };
    const stalled = await slow(() =>
      http("POST", `/v1/spaces/${cell}/agents/${agent}/blocks/notes/operations`, {
        bearer: eve.token,
        body,
        patienceMs: 60_000,
      }),
    );
    return stalled > 1000 ? `somebody else waited ${stalled} ms` : undefined;
  });
};

const runCount = async ({ http, key }: Stage, agent: string): Promise<number> =>
  (JSON.parse((await http("GET", `/v1/agents/${agent}/runs?limit=100`, { bearer: key })).text) as { items: unknown[] })
    .items.length;

/** How many runs there are once no more begin. */
const runsAtRest = async (stage: Stage, agents: string[]): Promise<number> => {
  const count = async () =>
    (await Promise.all(agents.map((agent) => runCount(stage, agent)))).reduce((sum, one) => sum + one, 0);
  let quiet = 0;
  let last = await count();
  for (const end = Date.now() + 40_000; Date.now() < end && quiet < 8 && last < 90; await wait(500)) {
    const now = await count();
    quiet = now === last ? quiet + 1 : 0;
    last = now;
  }
  return last;
};

/** 7: a chain that goes through HTTP has no end. */
export const chains = async (stage: Stage, { attack }: Tries): Promise<void> => {
  const { house, api, own, http, key } = stage;
  const eve = await house.addPerson(named("Eve"));
  const maxWakesPerRoot = 4;
  const perHour = 12;
  const ping = {
    name: "ping",
    description: "Pings",
    executionType: "gateway",
    execution: { url: own.url },
    visible: false,
  };
  const pinger = (limits: object) =>
    stage.agent(named("Pinger"), { tools: [ping], limits: { maxWakesPerRoot, ...limits } });
  const again = () => order([["ping", {}]]);
  const trigger = (agent: string, headers: Record<string, string> = {}, payload = again()) =>
    http("POST", `/v1/agents/${agent}/trigger`, { bearer: key, headers, body: { serviceName: "gateway", payload } });
  const rootOf = ({ headers }: OwnServer["requests"][number]): string => String(headers["colloquy-root"] ?? "");
  /** One message begins it, and each call of the tool does this. */
  const chain = async (
    agents: string[],
    onCall: (request: OwnServer["requests"][number], count: number) => Promise<unknown>,
  ) => {
    let calls = 0;
    own.answer = async (request) => {
      calls += 1;
      if (calls < 90) await onCall(request, calls);
      return { body: { done: true } };
    };
    const space = await stage.space("Loop", [eve.id, ...agents.slice(0, 1)]);
    await stage.say(space, eve.token, again());
    await until("first call", async () => calls > 0 || undefined);
    const runs = await runsAtRest(stage, agents);
    own.answer = async () => ({ body: {} });
    return { runs, calls };
  };
  const beyond = (most: number, { runs, calls }: { runs: number; calls: number }) =>
    runs > most || calls > most ? { runs, calls, most } : undefined;

  await attack(
    7,
    "a tool that has its own agent triggered, with the header passed on, ends with its root",
    async () => {
      const agent = await pinger({});
      return beyond(
        maxWakesPerRoot + 1,
        await chain([agent], (request) => trigger(agent, { "colloquy-root": rootOf(request) })),
      );
    },
  );
  await attack(7, "without the header it ends with the hour", async () => {
    const agent = await pinger({ maxRunsPerHour: perHour });
    return beyond(perHour, await chain([agent], () => trigger(agent)));
  });
  await attack(7, "through a webhook, and through two agents in turn, it is one chain too", async () => {
    const [one, other] = [await pinger({}), await pinger({})];
    const { url, secret } = await api.post<{ url: string; secret: string }>(`/v1/agents/${other}/hooks`, {
      name: "h",
      scheme: "header",
    });
    const deliver = (request: OwnServer["requests"][number]) =>
      http("POST", new URL(url).pathname, {
        headers: { "x-webhook-secret": secret, "colloquy-root": rootOf(request) },
        body: { payload: again() },
      });
    return beyond(
      2 * maxWakesPerRoot + 2,
      await chain([one, other], (request, count) =>
        count % 2 ? deliver(request) : trigger(one, { "colloquy-root": rootOf(request) }),
      ),
    );
  });
  await attack(
    7,
    "a chain through people's and services' messages, in new spaces each time, ends with the hour",
    async () => {
      const agent = await pinger({ maxRunsPerHour: perHour });
      const service = (
        await api.post<{ entity: { id: string } }>("/v1/entities", { type: "service", name: named("Bot") })
      ).entity;
      return beyond(
        perHour,
        await chain([agent], async (_, count) => {
          const by = count % 2 ? service.id : eve.id;
          const space = await stage.space("Next", [by, agent]);
          return http("POST", `/v1/spaces/${space}/messages`, {
            bearer: key,
            headers: { "x-entity-id": by },
            body: { text: again() },
          });
        }),
      );
    },
  );
  await attack(
    7,
    "one header sent 30 times wakes no more than its root may; a forged, foreign or doubled one is refused",
    async () => {
      const agent = await pinger({ maxRunsPerHour: 60 });
      let root = "";
      own.answer = async (request) => {
        root ||= rootOf(request);
        return { body: {} };
      };
      const space = await stage.space("Once", [eve.id, agent]);
      await stage.say(space, eve.token, again());
      await until("header", async () => root);
      own.answer = async () => ({ body: {} });
      const sent = await Promise.all(Array.from({ length: 30 }, () => trigger(agent, { "colloquy-root": root }, "x")));
      const runs = await runsAtRest(stage, [agent]);
      const [version, iv, body = ""] = root.split(".");
      const flipped = `${body.startsWith("A") ? "B" : "A"}${body.slice(1)}`;
      const foreign = await api.post<{ secretKey: string }>("/v1/workspaces", {}).catch(() => undefined);
      void foreign;
      const made = JSON.parse(
        (await http("POST", "/v1/workspaces", { bearer: house.adminKey, body: { name: "Other" } })).text,
      ) as { secretKey: string };
      const theirs = JSON.parse(
        (await http("POST", "/v1/agents", { bearer: made.secretKey, body: { name: "Their" } })).text,
      ) as { agent: { id: string } };
      const refused = [
        ...(await Promise.all(
          [
            `${version}.${iv}.${flipped}`,
            `${version}.${iv}.`,
            "v1.a.b",
            "null",
            " ",
            `${root}, ${root}`,
            `${root}.x`,
          ].map((each) => trigger(agent, { "colloquy-root": each }, "x")),
        )),
        await http("POST", `/v1/agents/${theirs.agent.id}/trigger`, {
          bearer: made.secretKey,
          headers: { "colloquy-root": root },
          body: { serviceName: "s", payload: 1 },
        }),
      ];
      return [
        ...(runs > maxWakesPerRoot + 1
          ? [`${runs} runs of ${sent.filter(({ status }) => status === 202).length} triggers`]
          : []),
        ...refused.flatMap(({ status, text }, index) =>
          status === 400 ? [] : [`header ${index} answered ${status}: ${text}`],
        ),
      ];
    },
  );
};

/** 8: one person uses up what is everybody's. */
export const shares = async (stage: Stage, { attack }: Tries): Promise<void> => {
  const { house, api, http } = stage;
  const [eve, ann] = [await house.addPerson("Greedy"), await house.addPerson("Ann")];
  const answered = async (space: string, message: string, agent: string, ms = 20_000) =>
    until(
      "answer",
      async () => {
        type Read = { entityId: string; outcome?: string };
        const { items } = await api.get<{ items: Read[] }>(`/v1/spaces/${space}/messages/${message}/reads`);
        return items.some(
          ({ entityId, outcome }) => entityId === agent && outcome !== undefined && outcome !== "failed",
        );
      },
      ms,
    ).then(
      () => true,
      () => false,
    );

  for (const [what, settings] of [
    ["in one space", [{}]],
    ["in three spaces, one of them confidential", [{}, {}, { confidential: true }]],
  ] as const) {
    await attack(8, `who posts 30 times ${what} uses up a share of the day; the next person is answered`, async () => {
      const limits = { maxTokensPerDay: 200_000, maxTokensPerRun: 10_000, maxSteps: 4 };
      const agent = await stage.agent(named("Helper"), { limits });
      const spaces = await Promise.all(
        settings.map((one, index) => stage.space(`Desk ${index}`, [eve.id, ann.id, agent], one)),
      );
      const line = await stage.socket(`/v1/spaces/${spaces[0]}/stream?token=${eve.token}`);
      for (let count = 0; count < 30; count += 1)
        await stage.say(spaces[count % spaces.length] ?? "", eve.token, `more ${count} ${"words ".repeat(600)}`);
      await wait(6000);
      const first = spaces[0] ?? "";
      const message = await stage.say(first, ann.token, "Hello?");
      const isAnswered = await answered(first, message, agent);
      const { agent: now } = await api.get<{ agent: { activity: { tokensToday: number; state: string } } }>(
        `/v1/agents/${agent}`,
      );
      line.end();
      const isTold = line.frames.some((frame) => frame.includes("agent.budget_exhausted") && frame.includes(eve.id));
      return isAnswered && isTold ? undefined : { isAnswered, isTold, ...now.activity };
    });
  }
  await attack(
    8,
    "120 spaces at once by one person: the day's bound holds, also after deleting, and under idempotency keys",
    async () => {
      const make = (index: number) =>
        http("POST", "/v1/spaces", {
          bearer: eve.token,
          headers: index % 2 ? { "idempotency-key": `k${index}` } : {},
          body: { name: `S${index}` },
        });
      const made = (await Promise.all(Array.from({ length: 120 }, (_, index) => make(index)))).filter(
        ({ status }) => status === 201,
      );
      for (const { text } of made.slice(0, 10)) {
        const { space } = JSON.parse(text) as { space: { id: string } };
        await http("DELETE", `/v1/spaces/${space.id}`, { bearer: eve.token });
      }
      const after = (await Promise.all(Array.from({ length: 10 }, (_, index) => make(200 + index)))).filter(
        ({ status }) => status === 201,
      );
      const hers = await http("POST", "/v1/spaces", { bearer: ann.token, body: { name: "Ann's" } });
      return made.length > 50 || after.length > 0 || hers.status !== 201
        ? { made: made.length, after: after.length, hers: hers.status }
        : undefined;
    },
  );
  await attack(8, "one person follows a block 220 times through two spaces: others still follow it", async () => {
    const agent = await stage.agent(named("Keeper"));
    await api.post(`/v1/agents/${agent}/blocks`, { label: "board", type: "core" });
    const spaces = [
      await stage.space("One", [eve.id, ann.id, agent]),
      await stage.space("Two", [eve.id, ann.id, agent]),
    ];
    for (const space of spaces) await api.put(`/v1/agents/${agent}/blocks/board/spaces/${space}`, {});
    const follow = (index: number, token: string) =>
      stage.socket(`/v1/spaces/${spaces[index % 2]}/agents/${agent}/blocks/board/stream?token=${token}`);
    const lines = await Promise.all(Array.from({ length: 220 }, (_, index) => follow(index, eve.token)));
    const hers = await follow(0, ann.token);
    const opened = lines.filter(({ refused }) => refused === undefined).length;
    for (const line of [...lines, hers]) line.end();
    return hers.refused !== undefined || opened > 60 ? { opened, hers: hers.refused } : undefined;
  });
  await attack(8, "one person opens 120 sockets of a space: others still come in", async () => {
    const space = await stage.space("Door", [eve.id, ann.id]);
    const open = (token: string) => stage.socket(`/v1/spaces/${space}/stream?token=${token}`);
    const lines = await Promise.all(Array.from({ length: 120 }, () => open(eve.token)));
    const hers = await open(ann.token);
    const opened = lines.filter(({ refused }) => refused === undefined).length;
    for (const line of [...lines, hers]) line.end();
    return hers.refused !== undefined || opened > 60 ? { opened, hers: hers.refused } : undefined;
  });
};
