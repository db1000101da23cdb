import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { vi } from "vitest";
import { watchdogMs } from "../../src/agent/bounds.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import type { ExportPage, ExportPlace } from "../../src/protocol/agent-rpc.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { log } from "../../src/shared/log.ts";
import { type AgentSettings, agentStub, ids, openHouse, told } from "../agent/fixture.ts";
import { call, installModel, type ScriptedPart, scriptedModel, step, text } from "../support/scripted-model.ts";

/**
 * Worlds that are equal but for what is said in a confidential space, and how much. A case is a conversation: some
 * messages in the confidential space, then one thing that happens outside of it, the same in all. Nothing is said there in
 * the quiet world, which is played once. What each other world is outside is compared with it after each case, to the last
 * row. Worlds that are equal to the quiet one are equal to each other.
 */

/** The deeds of a run that knows a secret word: all that could carry it out of the space, or change what is open. */
const insideDeeds = {
  answer: () => [],
  "say elsewhere": (word, { Alpha }) => [
    call("enter_space", { spaceId: Alpha, limit: 5 }),
    call("send_message", { text: word }),
  ],
  "reply elsewhere": (word, { Beta }) => [call("enter_space", { spaceId: Beta }), call("send_message", { text: word })],
  "keep a memory": (word) => [call("set_memories", { memories: [{ key: word, value: word }] })],
  "change an open memory": (word) => [call("set_memories", { memories: [{ key: "mood", value: word }] })],
  "forget open memories": () => [call("delete_memories", { keys: ["mood", "open"] })],
  "set a goal": (word) => [call("set_goals", { goals: [{ id: word, description: word }] })],
  "change an open goal": (word) => [
    call("set_goals", { goals: [{ id: "aim", description: word, status: "completed" }] }),
  ],
  "delete an open goal": () => [call("delete_goals", { goalIds: ["aim"] })],
  "set a plan": (word) => [call("set_plans", { plans: [{ name: word, instruction: word, runAfter: "300 days" }] })],
  "change an open plan": (word) => [
    call("set_plans", { plans: [{ id: "later", name: word, instruction: word, runAfter: "1 days" }] }),
  ],
  "delete an open plan": () => [call("delete_plans", { planIds: ["later"] })],
  "make a block": (word) => [call("block_create", { label: `b_${word}`, content: word })],
  "edit an open block": (word) => [
    call("block_load", { label: "notes" }),
    call("block_edit", { label: "notes", operations: [{ op: "set_text", text: word }] }),
  ],
  "share a block": (word, { Alpha }) => [
    call("block_create", { label: `s_${word}`, content: word }),
    call("block_share", { label: `s_${word}`, with: Alpha, permission: "Read" }),
  ],
  "archive it": (word) => [call("recall", { op: "insert", content: `the report says ${word}` })],
  "look for it": (word) => [call("search", { query: `report ${word}` }), call("recall", { op: "search", query: word })],
  "look at runs": () => [
    call("get_my_runs", {}),
    call("get_memories", {}),
    call("get_plans", {}),
    call("block_list", {}),
  ],
  "read open spaces": (_word, { Alpha, Beta }) => [
    call("read_messages", { spaceId: Alpha, limit: 5 }),
    call("read_messages", { spaceId: Beta, limit: 5 }),
  ],
  "use a tool": (word) => [call("note", { about: word }), call("send", { about: word })],
} satisfies Record<string, (word: string, places: Places) => ScriptedPart[]>;

/** The deeds of a run outside: all that could bring the word there. */
const outsideDeeds = {
  answer: () => [],
  "enter the confidential space": (_word, { Vault }) => [call("enter_space", { spaceId: Vault, limit: 50 })],
  "read the confidential space": (_word, { Vault }) => [call("read_messages", { spaceId: Vault, limit: 50 })],
  "say it there": (word, { Vault }) => [call("enter_space", { spaceId: Vault }), call("send_message", { text: word })],
  "say it elsewhere": (word, { Beta }) => [
    call("enter_space", { spaceId: Beta }),
    call("send_message", { text: word }),
  ],
  "keep a memory": (word) => [call("set_memories", { memories: [{ key: "mood", value: word }] })],
  "set a goal": (word) => [call("set_goals", { goals: [{ id: "aim", description: word }] })],
  "set a plan": (word) => [
    call("set_plans", { plans: [{ id: "later", name: word, instruction: word, runAfter: "300 days" }] }),
  ],
  "edit a block": (word) => [call("block_edit", { label: "notes", operations: [{ op: "set_text", text: word }] })],
  "archive it": (word) => [call("recall", { op: "insert", content: `the report says ${word}` })],
  "look for it": () => [
    call("search", { query: "what does the report say" }),
    call("recall", { op: "search", query: "the report" }),
  ],
  "look at runs": () => [
    call("get_my_runs", {}),
    call("get_memories", {}),
    call("get_plans", {}),
    call("block_list", {}),
  ],
  "use a tool": (word) => [call("note", { about: word })],
} satisfies Record<string, (word: string, places: Places) => ScriptedPart[]>;

type Places = Record<"Alpha" | "Beta" | "Vault", string>;
type Inside = keyof typeof insideDeeds;
type Outside = keyof typeof outsideDeeds;
const keysOf = <Key extends string>(record: Record<Key, unknown>): Key[] => Object.keys(record) as Key[];

const crashes = ["agent.after-take", "agent.after-journal", "agent.after-call", "agent.before-commit"] as const;
const seldom = (times: number): undefined[] => Array.from({ length: times });

const exchange = fc.record({
  by: fc.constantFrom("Husam", "Sara"),
  deeds: fc.array(fc.constantFrom(...keysOf(insideDeeds)), { maxLength: 3 }),
  crash: fc.constantFrom(...crashes, ...seldom(12)),
});
type Exchange = typeof exchange extends fc.Arbitrary<infer E> ? E : never;
const inside = fc.array(exchange, { maxLength: 2 });

/** The secret words of each world that is compared with a quiet one. Words of one are no words of another. */
const secretWords = ["plum", "walnuts", "rhubarb", "fig", "gooseberries"] as const;
export const comparedWorlds = secretWords.length;

const conversation = fc.record({
  /** What is said in the confidential space, in each world that is not quiet. */
  insides: fc.array(inside, { minLength: comparedWorlds, maxLength: comparedWorlds }),
  from: fc.constantFrom("Alpha", "Beta", "service", "plan"),
  deeds: fc.array(fc.constantFrom(...keysOf(outsideDeeds)), { maxLength: 3 }),
  crash: fc.constantFrom(...crashes, ...seldom(20)),
});

export const conversationsInWorld = 20;

const worlds = fc.record({
  messaging: fc.constantFrom("simple", "threaded"),
  maxTokens: fc.constantFrom(6000, 32_000),
  strategy: fc.constantFrom("self_summaries", "truncate", "recursive_summarization"),
  historyMessages: fc.constantFrom(4, 50),
  conversations: fc.array(conversation, { minLength: conversationsInWorld, maxLength: conversationsInWorld }),
});
/** The space is confidential from its creation, or from this conversation on. */
const switches = [0, 3, 0, 8];

/** The worlds of a seed, whichever others are played. Seeds that follow each other take all switches in turn. */
export const worldsOf = (seed: number) => {
  // Seeds that are alike would draw alike.
  const [drawn] = fc.sample(worlds, { seed: Math.imul(seed + 1, 0x9e3779b1), numRuns: 1, unbiased: true });
  if (!drawn) throw new Error("one was asked for");
  return { ...drawn, confidentialAt: switches[seed % switches.length] ?? 0 };
};
export type Worlds = ReturnType<typeof worldsOf>;
type Continuity = "consciousness" | "timeline";

const tool = (name: string, more: object = {}) => ({
  ...{ name, description: "Writes it down", executionType: "internal", inputSchema: { type: "object" } },
  ...more,
});

const settingsOf = ({ messaging, maxTokens, strategy, historyMessages }: Worlds, continuity: Continuity) =>
  ({
    name: "Analyst",
    ...{ continuity, messaging },
    tools: [tool("note"), tool("send", { confidential: "allowed" })],
    context: {
      maxTokens,
      reservedResponseTokens: 500,
      memoryTokens: 1000,
      minRecentCycles: 2,
      historyMessages,
      compaction: strategy === "recursive_summarization" ? { strategy, chunkSize: 4 } : { strategy },
    },
  }) as unknown as AgentSettings;

/** Ids are told apart by where they stood first; the rest is as it is. */
const createNormalizer = () => {
  const names = new Map<string, string>();
  return (value: unknown): string =>
    asText(value).replaceAll(anyId, (id, prefix: string) => {
      const name = names.get(id) ?? `${prefix}_${names.size}`;
      names.set(id, name);
      return name;
    });
};

/** An id, or the beginning of one where a text was cut. */
const anyId = /(wsp|ent|spc|key|str|msg|run|tc|pln|hook|evt|arch)_[0-9A-HJKMNP-TV-Z]{6,60}/g;
const asText = (value: unknown): string =>
  JSON.stringify(value, (_, held: unknown) => (held instanceof ArrayBuffer ? "bytes" : held));

/** The own parts of ids stand alone in some rows. */
const ownPart = /"[0-9A-HJKMNP-TV-Z]{26}"/g;
const withoutIds = (shown: string): string => shown.replaceAll(anyId, "$1_").replaceAll(ownPart, '""');

/** Rows in no order, without their ids: where the order counts, a column holds the place. */
const anonymous = (rows: unknown[]): string =>
  rows
    .map((row) => withoutIds(asText(row)))
    .sort()
    .join("\n");

/** Tables whose rows may differ: what is paid for, what is to be done when, and parts of an index that search shows. */
const isApart = (table: string): boolean =>
  /^(sqlite_|_cf_|ledger$|timers$|compartments$)|_(data|idx|docsize|config)$/.test(table);
/**
 * Columns that may differ and show nowhere: how far the confidential space was followed, and the order of indexing.
 * Also how much of an input was repeated, since that counts characters of ids.
 */
const unshown: Record<string, string[]> = {
  spaces: ["cursor", "version", "processed_seq", "acknowledged"],
  search_sources: ["cursor"],
  search_entries: ["id"],
  runs: ["prefix_reuse"],
};

/** The rows of an object by their tables. `vault`: the confidential space. */
const rowsOf = (stub: DurableObjectStub, vault: string): Promise<Record<string, unknown[]>> =>
  runInDurableObject(stub, (_, { storage: { sql } }) => {
    const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    const shown = (table: string, row: Record<string, unknown>): Record<string, unknown> => {
      const hidden =
        JSON.stringify(row).includes(vault) || !/^(spaces|search_sources)$/.test(table) ? unshown[table] : [];
      return Object.fromEntries(Object.entries(row).filter(([column]) => !hidden?.includes(column)));
    };
    const rowsIn = (name: string) => [...sql.exec(`SELECT * FROM "${name}"`)].map((row) => shown(name, row));
    return Object.fromEntries(tables.flatMap(({ name }) => (isApart(name) ? [] : [[name, rowsIn(name)]])));
  });

/** A short name of a text: whatever is made of the text differs where it does. */
const digest = (told: string): string => {
  let hash = 0;
  for (let at = 0; at < told.length; at += 1) hash = (Math.imul(hash, 31) + told.charCodeAt(at)) | 0;
  return (hash >>> 0).toString(36);
};

/** The runs of a mind, and what it has still to do. */
const workLeft = `SELECT (SELECT count(*) FROM runs) AS runs,
  (SELECT count(*) FROM runs WHERE status IN ('running', 'waiting_reply', 'waiting_tool'))
    + (SELECT count(*) FROM inbox WHERE status = 'pending' AND wakes) AS left`;
/** A mind is looked at as runs end, and this often in between. */
const lookMs = 20;
const manyLooks = 100;
const maxLooks = 1000;

/** The parts of a world that are seen outside its confidential space after one conversation, as text. */
type Seen = Record<string, string>;
/** What was seen after each conversation, and what happened. */
export type World = { seen: Seen[]; happened: Set<string> };

/** All worlds begin at the same time. The platform's clock is behind it, so that no alarm goes off without a test's word. */
const began = Date.parse("2031-03-03T08:00:00Z");

/** The quiet world is of no number. */
const quiet = -1;

/** Plays the world of a number. */
const playWorld = async (drawn: Worlds, continuity: Continuity, which: number): Promise<World> => {
  vi.setSystemTime(began);
  const house = await openHouse();
  const { workspaceId } = house;
  /** Ids begin with their time: what is made a second later is later in every order. */
  const later = <T>(made: T): T => {
    vi.setSystemTime(Date.now() + 1000);
    return made;
  };
  const people = { Husam: later(await house.person("Husam")), Sara: later(await house.person("Sara")) };
  const analyst = later(await house.agent(settingsOf(drawn, continuity)));
  const everybody = [people.Husam, people.Sara, analyst];
  const vault = later({ id: ids.mint("spc") });
  const makeVault = async () => {
    const settings = { name: "Vault", wakePolicy: "every_message", shareOrigin: "reference" } as const;
    const confidential = drawn.confidentialAt === 0;
    const input = { id: vault.id, workspaceId, settings: { ...settings, confidential }, members: everybody };
    unwrap(await env.SPACE.getByName(vault.id).create(input));
    await told(vault.id);
  };
  const spaces = {
    Alpha: later(await house.space("Alpha", everybody)),
    Beta: later(await house.space("Beta", everybody)),
  };
  await makeVault();
  const places: Places = { Alpha: spaces.Alpha.id, Beta: spaces.Beta.id, Vault: vault.id };
  const agent = () => env.AGENT.getByName(analyst.id);
  const compartment: EntityRef = { ...analyst, id: compartmentId(ids, analyst.id, vault.id) };
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  const names = createNormalizer();
  const happened = new Set<string>();

  let play: ScriptedPart[] = [];
  let mark = "";
  let isInside = false;
  let inputs: string[] = [];
  const uninstall = installModel(
    scriptedModel((options: CallOptions) => {
      const given = JSON.stringify([options.prompt, options.tools?.map(({ name }) => name)]);
      // Summaries say of what they are made.
      if (!options.tools?.length) return { ...step(text(`So it was: ${digest(withoutIds(given))}.`)), usage: null };
      if (!isInside) inputs.push(names(given));
      const isBegun = given.includes(mark);
      const doing = isBegun || play.length === 0 ? step(text("Done.")) : step(text(mark), ...play);
      return { ...doing, usage: null };
    }),
  );

  /** How many runs a mind has begun, and whether it rests. A compartment has no tables before its first delivery. */
  const stateOf = (mind: { id: string }) =>
    runInDurableObject(agentStub(mind), (_, { storage: { sql } }) => {
      const exists = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'runs'").toArray().length > 0;
      if (!exists) return { runs: 0, left: 0 };
      const { runs, left } = sql.exec<{ runs: number; left: number }>(workLeft).one();
      return { runs, left };
    });
  let crashed = false;
  /** Looked for below: a promise that an object resolves goes on in that object. */
  let stirred = false;
  vi.spyOn(log, "info").mockImplementation((event) => {
    if (event === "run.ended") stirred = true;
  });
  /** Resolves once a mind has ended a run more, and rests. */
  const settled = async (mind: { id: string }, more: number): Promise<void> => {
    for (let looks = 0, looksAfterCrash = 0; looks < maxLooks; looks += 1) {
      stirred = false;
      const now = await stateOf(mind).catch(() => undefined);
      if (now && now.runs >= more && now.left === 0) return;
      // The clock goes on again only where it was not enough that it did so with the crash.
      if (crashed && looksAfterCrash % manyLooks === 0) {
        if (looksAfterCrash > 0) vi.setSystemTime(Date.now() + watchdogMs + 1);
        await runDurableObjectAlarm(agentStub(mind)).catch(() => false);
      }
      if (crashed) looksAfterCrash += 1;
      for (let waited = 0; !stirred && waited < lookMs; waited += 2) await scheduler.wait(2);
    }
    throw new Error(`a mind does not rest after ${more} runs`);
  };
  const arm = (crash: (typeof crashes)[number] | undefined): void => {
    crashed = false;
    if (!crash) return;
    // The clock goes on with the crash itself, so that all that comes after is as late in all worlds.
    void armFault(crash, 0, () => vi.setSystemTime(Date.now() + watchdogMs + 1)).then(() => {
      crashed = true;
      stirred = true;
    });
  };

  let secrets = 0;
  /** Says something in the confidential space. */
  const sayInside = async (secret: string, { by, deeds, crash }: Exchange): Promise<void> => {
    secrets += 1;
    const word = `${secret}${secrets}`;
    isInside = true;
    mark = `(inside ${word})`;
    play = deeds.flatMap((deed) => insideDeeds[deed](word, places));
    for (const deed of deeds) happened.add(`inside: ${deed}`);
    const before = await stateOf(compartment);
    arm(crash);
    const said = `the report says ${word}, ${word} and ${word}`;
    unwrap(
      await env.SPACE.getByName(vault.id).post(
        { kind: "entity", workspaceId, entityId: people[by].id, admin: false, expiresAt: Date.now() + 600_000 },
        { text: said },
      ),
    );
    await settled(compartment, before.runs + 1);
    await told(vault.id);
    if (crashed) happened.add("inside: a crash");
    disarmFaults();
    isInside = false;
  };

  const sayOutside = async (number: number, { from, deeds, crash }: Worlds["conversations"][number]): Promise<void> => {
    const word = `word${number}`;
    mark = `(outside ${word})`;
    play = deeds.flatMap((deed) => outsideDeeds[deed](word, places));
    for (const deed of deeds) happened.add(`outside: ${deed}`);
    happened.add(`outside: by ${from}`);
    inputs = [];
    const before = await stateOf(analyst);
    arm(crash);
    if (from === "service") {
      unwrap(await agent().trigger(workspaceId, { serviceName: "crm", payload: { about: word } }));
    } else if (from === "plan") {
      const at = new Date(Date.now() + 60_000).toISOString();
      unwrap(await agent().putPlan(workspaceId, `p${number}`, { name: "Due", instruction: word, scheduledAt: at }));
      vi.setSystemTime(Date.now() + 61_000);
      await runDurableObjectAlarm(agentStub(analyst)).catch(() => false);
    } else unwrap(await spaces[from].stub().post(spaces[from].as(people.Husam), { text: `what about ${word}?` }));
    await settled(analyst, before.runs + 1);
    for (const space of Object.values(spaces)) await told(space.id);
    if (crashed) happened.add("outside: a crash");
    disarmFaults();
  };

  /** All that there is to be seen outside. */
  const look = async (number: number): Promise<Seen> => {
    const whole = number % 5 === 4 || number === conversationsInWorld - 1;
    const seen: Seen = { inputs: inputs.join("\n") };
    const query = SearchQuery.parse({ query: "what does the report say" });
    seen.search = names(await agent().search(workspaceId, query));
    const { prefixReuse: _, ...context } = unwrap(await agent().context(workspaceId));
    seen.context = names(context);
    if (!whole) return seen;
    for (const [table, rows] of Object.entries(await rowsOf(agentStub(analyst), vault.id)))
      seen[`mind.${table}`] = anonymous(rows);
    for (const [name, space] of Object.entries(spaces)) {
      seen[`${name}.messages`] = names(await space.messages());
    }
    seen.blocks = names(await agent().blocks(workspaceId));
    seen.memories = names(await agent().memories(workspaceId));
    const pages: string[] = [];
    for (let place: ExportPlace | null = null, isOver = false; !isOver; isOver = place === null) {
      const page: ExportPage = unwrap(await agent().exportPage(workspaceId, place));
      pages.push(names(page.text.replaceAll(/"prefixReuse":[\d.]+/g, "")));
      place = page.next;
    }
    seen.export = pages.join("");
    return seen;
  };

  try {
    unwrap(
      await agent().createBlock(
        workspaceId,
        CreateBlock.parse({ label: "notes", type: "working", content: "open notes" }),
        "system",
      ),
    );
    unwrap(await agent().putMemory(workspaceId, "mood", "calm"));
    unwrap(await agent().putGoal(workspaceId, "aim", { description: "an open aim" }));
    unwrap(await agent().putPlan(workspaceId, "later", { name: "Later", instruction: "look", runAfter: "300 days" }));
    const seen: Seen[] = [];
    for (const [index, each] of drawn.conversations.entries()) {
      if (index === drawn.confidentialAt && index > 0) {
        vi.setSystemTime(began + index * 3_600_000 - 1_800_000);
        unwrap(await env.SPACE.getByName(vault.id).update(key, { confidential: true }));
        await told(vault.id);
        happened.add("a switch");
      }
      if (index >= drawn.confidentialAt) {
        vi.setSystemTime(began + index * 3_600_000);
        for (const exchanged of each.insides[which] ?? []) await sayInside(secretWords[which] ?? "", exchanged);
      }
      vi.setSystemTime(began + index * 3_600_000 + 1_800_000);
      await sayOutside(index, each);
      seen.push(await look(index));
    }
    return { seen, happened };
  } finally {
    disarmFaults();
    uninstall();
    vi.useRealTimers();
    await agent()
      .remove(workspaceId)
      .catch(() => undefined);
  }
};

/** The first place in which two texts differ, with what stands there. */
const difference = (one: string, other: string): string => {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 200);
  return `…${one.slice(from, at + 150)}… differs from …${other.slice(from, at + 150)}…`;
};

export type Leak = { world: number; conversation: number; what: string; how: string };

/** Where worlds differ from the quiet one outside the confidential space, by world and conversation. */
export const compareWorlds = async (
  drawn: Worlds,
  continuity: Continuity,
): Promise<{ leaks: Leak[]; happened: Set<string> }> => {
  const { seen: expected, happened } = await playWorld(drawn, continuity, quiet);
  const leaks: Leak[] = [];
  for (const world of secretWords.keys()) {
    const played = await playWorld(drawn, continuity, world);
    for (const what of played.happened) happened.add(what);
    for (const [conversation, seen] of played.seen.entries()) {
      for (const [what, there] of Object.entries(seen)) {
        const here = expected[conversation]?.[what] ?? "";
        if (here !== there) leaks.push({ world, conversation, what, how: difference(here, there) });
      }
    }
  }
  return { leaks, happened };
};

/** What happens in the worlds of one continuity, once there are many. */
export const happenings = (): string[] => [
  ...keysOf(insideDeeds).map((deed: Inside) => `inside: ${deed}`),
  ...keysOf(outsideDeeds).map((deed: Outside) => `outside: ${deed}`),
  ...["Alpha", "Beta", "service", "plan"].map((from) => `outside: by ${from}`),
  ...["inside: a crash", "outside: a crash", "a switch"],
];
