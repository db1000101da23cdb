import { both, held, living, type Play, refusalOf, type Scene, sectionOf, until, use } from "./scene.ts";

/** Lines 8 to 16: what an agent can do, and what it and its owner are told where it cannot. */
type List<Item> = { items: Item[] };

const threaded = async ({ check, reads, api, person, space, messages, agent }: Scene): Promise<void> => {
  const [husam, sara, tom] = [await person("Husam"), await person("Sara"), await person("Tom")];
  for (const policy of ["addressed", "every_message"]) {
    const [analyst, scribe] = [await agent({ name: `A-${policy}` }), await agent({ name: `S-${policy}` })];
    const alpha = await space(`Alpha, ${policy}`, [husam, sara, tom, analyst], policy);
    const asking = use("send_message", { text: "@Sara @Tom which quarter?", wait: true });
    const { run } = await analyst.does(husam, alpha, `@A-${policy} ask them`, asking);
    check(`${policy}: its cycle ends with the question`, run.status === "completed" && run.steps.length === 2, run);
    const question = (await messages(alpha)).at(-1)?.id;
    const inbox = async () => (await api.get<List<unknown>>(`${analyst.at}/inbox`)).items.length;
    await sara.post(alpha, "Q4");
    await until("the first answer", async () => (await inbox()) === 1);
    check(`${policy}: one of two answers wakes nobody`, (await analyst.runs()).length === 1);
    const second = await analyst.after(() => tom.post(alpha, "The last one"));
    const answer = `[answer to ${question} "@Sara @Tom which quarter?"]`;
    const both = [answer, '"Q4"', answer, '"The last one"'];
    reads(`${policy}: both come together, with what they answer`, analyst.opening(), ...both);
    check(`${policy}: in one batch, and none stays`, second.trigger.eventCount === 2 && (await inbox()) === 0, second);
    const desk = await space(`Desk, ${policy}`, [husam, analyst, scribe], "addressed");
    const peer = use("send_message", { text: `@S-${policy} are you there?`, wait: true });
    await analyst.does(husam, desk, `@A-${policy} ask it`, peer);
    await scribe.ended(1);
    reads(`${policy}: who is asked reads that a reply is expected`, scribe.opening(), /there\?".*\[expects a reply\]/);
  }
};

const waiting = async ({ check, reads, person, space, agent, room }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  const asking = (text: string) => use("send_message", { text, wait: true });
  const two = await analyst.does(husam, alpha, "The numbers", asking("Which quarter?"));
  reads("in a space of two it waits for the other", two.outputs[0], '"waitingFor":["Husam"]');
  const [sara, other] = [await person("Sara"), await agent({ name: "Other" })];
  const beta = await space("Beta", [husam, sara, other]);
  const { outputs, run } = await other.does(husam, beta, "Ask", asking("Anybody?"), asking("@Other?"));
  reads("where it can mean nobody it reads why, and what to do", outputs[0], "mentions no other member", "@Name");
  reads("and that it would wait for itself", outputs[1], "you would wait for yourself");
  check("and goes on", run.status === "completed", run);
  let replyToMessageId = "";
  await other.after(async () => (replyToMessageId = await sara.post(beta, "@Husam the numbers, please")));
  const reply = use("send_reply", { replyToMessageId, text: "Which quarter?", wait: true });
  const replied = await other.does(husam, beta, "Ask her", reply);
  reads("a reply waits for whom it answers", replied.outputs[0], '"waitingFor":["Sara"]');
};

const blocks = async ({ check, reads, api, agent, room, continuity }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  const scribe = await agent({ name: "Scribe" });
  const create = (of: typeof analyst, block: object) => api.post(`${of.at}/blocks`, block);
  await create(analyst, { label: "persona", type: "core", content: "calm" });
  await create(analyst, { label: "notes", pinned: true });
  await create(analyst, { label: "own", permission: "Admin" });
  const core = await api.get<List<{ label: string }>>(`${analyst.at}/blocks?type=core`);
  check("?type=core lists the core blocks alone", core.items.map(({ label }) => label).join() === "persona", core);
  reads("and an unknown type is refused", await refusalOf(api.get(`${analyst.at}/blocks?type=poem`)), "400", "type");
  await analyst.after(() => husam.post(alpha, "Hello"));
  for (const [label, permission] of Object.entries({ plan: "ReadWrite", theirs: "Admin" })) {
    await create(scribe, { label, content: "The zeppelin leaves at noon." });
    await api.put(`${scribe.at}/blocks/${label}/shares/${analyst.id}`, { permission });
  }
  const [label, from] = ["notes", "Scribe"];
  const wanted = {
    list: use("block_list"),
    search: use("search", { query: "zeppelin" }),
    load: use("block_load", { label: "plan", from }),
    archive: use("block_archive", { label }),
    pin: use("block_pin", { label }),
    restore: use("block_restore", { label }),
    again: use("block_restore", { label }),
    deleteOwn: use("block_delete", { label: "own" }),
    deleteTheirs: use("block_delete", { label: "theirs", from }),
    deletePlan: use("block_delete", { label: "plan", from }),
  };
  const { outputs } = await analyst.does(husam, alpha, "Tidy up", ...Object.values(wanted));
  const told = Object.fromEntries(Object.keys(wanted).map((name, index) => [name, outputs[index]]));
  const shared = `"plan" is ${continuity === "timeline" ? "" : "now "}shared with you by "Scribe" (ReadWrite)`;
  reads("a share is announced", analyst.given(), "BLOCKS:", shared);
  const labels = ["notes", "own", "persona", "plan", "theirs"].map((each) => `"label":"${each}"`);
  reads("block_list has its own and those shared with it", told.list, ...labels);
  const fields = ['"label":"plan"', '"type":"working"', '"permission":"ReadWrite"', '"size":28', '"shared":true'];
  reads("with type, permission and size", told.list, ...fields);
  reads("search finds a shared block", told.search, '"type":"block"', "zeppelin");
  reads("and block_load reads it", told.load, "The zeppelin leaves at noon.");
  reads("to pin what was put away changes nothing, and says so", told.pin, "conflict", "block_restore brings it back");
  reads("block_restore brings it back as it was", told.restore, '"success":true', '"working"', '"pinned":true');
  reads("and only what was put away", told.again, "conflict", "not put away");
  reads("an Admin deletes its own", told.deleteOwn, '"success":true');
  reads("and another's", told.deleteTheirs, '"success":true');
  reads("who is none does not", told.deletePlan, "forbidden", "Admin");
};

const schemas = async ({ check, reads, api, room }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  const name = { name: "name", required: true, description: "Who it is" };
  const schema = { type: "map", fields: [name, { name: "visits", type: "counter" }] };
  await api.post(`${analyst.at}/blocks`, { label: "contact", type: "core", schema });
  await api.post(`${analyst.at}/blocks`, {
    label: "tasks",
    pinned: true,
    schema: { type: "list", itemSchema: schema },
  });
  const operations = [{ op: "set_field", field: "mail", value: "sk-12345" }];
  const wanted = [use("block_load", { label: "contact" }), use("block_edit", { label: "contact", operations })];
  const { outputs } = await analyst.does(husam, alpha, "Fill it in", ...wanted);
  const fields = "fields: name (text, required): Who it is · visits (counter)";
  reads("an empty map shows its fields", analyst.given(), '<block:contact permission="ReadWrite">', fields);
  reads(
    "and an empty list those of its items",
    analyst.given(),
    '<block:tasks permission="ReadWrite">',
    `item ${fields}`,
  );
  reads("block_load has the schema", outputs[0], '"schema"', '"description":"Who it is"');
  const known = "Field not found: mail. The fields are: name (text, required), visits (counter)";
  reads("a wrong field is told with the right ones", outputs[1], known);
  check("and never with its value", outputs[1]?.includes("sk-12345") === false, outputs[1]);
};

const errors = async ({ check, reads, api, room }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  const secret = "the launch code is 7429";
  const { outputs, run } = await analyst.does(
    husam,
    alpha,
    "Try it",
    use("send_message", { text: `${secret} ${"x".repeat(33_000)}` }),
    use("set_memories", { memories: [{ key: secret, value: "v" }] }),
    // A third bad step in a row would end the run (maxInvalidSteps).
    use("get_memories"),
    use("send_message", { text: "Hi", waits: secret }),
    use("block_restore", { label: "nothing" }),
  );
  reads("a long text: path, rule and bound, remedy", outputs[0], "text: must be at most 32768 bytes", "shorten it");
  reads("a bad key: path and rule", outputs[1], "memories.0.key: must be 1–64 of A-Z a-z 0-9 _ -");
  reads("an unknown field: its name", outputs[3], "unknown fields, leave them out: waits");
  reads("a restore of nothing: that", outputs[4], "not_found", "nothing");
  check(
    "never the value, and the run goes on",
    !outputs.join().includes("7429") && run.status === "completed",
    outputs,
  );
  const refused = await refusalOf(api.patch(analyst.at, { context: { maxEvent: 3 } }));
  reads("an unknown field of a config: its name", refused, "400", "maxEvent");
};

const receipts = async ({ check, reads, api, room }: Scene): Promise<void> => {
  const { husam, analyst, alpha } = await room();
  const receiptOf = (id: string) =>
    until("a receipt", async () => {
      const { items } = await api.get<List<unknown>>(`/v1/spaces/${alpha}/messages/${id}/reads`);
      return items.length > 0 && JSON.stringify(items);
    });
  const { run } = await analyst.does(husam, alpha, "Anyone?", use("send_message", { text: "Here." }));
  const { items } = await api.get<List<{ id: string }>>(`/v1/spaces/${alpha}/messages`);
  const first = await receiptOf(items[0]?.id ?? "");
  reads("a receipt says by which run, with which outcome", first, `"runId":"${run.id}"`);
  const second = await receiptOf(await husam.post(alpha, "Thanks"));
  reads("so does the next", second, '"silent"');
  check("and the first stays as it was", (await receiptOf(items[0]?.id ?? "")) === first, first);
};

const settings = async ({ check, reads, api, agent, space, person, continuity, model }: Scene): Promise<void> => {
  const [husam, designer] = [await person("Husam"), await agent({ name: "Designer" })];
  const bound = continuity === "timeline" ? { historyMessages: 2 } : { maxEvents: 2 };
  const analyst = await agent({ context: { activity: { entries: 1 }, ...bound } });
  const alpha = await space("Alpha", [husam, designer, analyst], "addressed");
  for (const text of ["One", "Two"])
    await designer.does(husam, alpha, "@Designer say it", use("send_message", { text }));
  analyst.play(held);
  await husam.post(alpha, "@Analyst hello");
  await analyst.asked(1);
  const activity = sectionOf(analyst.given(), "ACTIVITY").split("\n").slice(1);
  check("activity.entries is how many lines it shows", activity.length === 1, activity);
  reads("the newest of them", activity[0], '"Designer" answered in "Alpha"');
  if (continuity === "timeline") {
    const shown = sectionOf(analyst.given(), "SPACE HISTORY").match(/^ {2}\[msg_/gm) ?? [];
    return check("historyMessages is how many messages it shows", shown.length === 2, shown);
  }
  for (const each of ["1", "2", "3"]) await husam.post(alpha, `@Analyst ${each}`);
  const pending = `${analyst.at}/inbox?status=pending`;
  await until("all three wait", async () => (await api.get<List<unknown>>(pending)).items.length === 3);
  model.release();
  await analyst.ended(3);
  const taken = (await analyst.runs()).map(({ trigger }) => trigger.eventCount);
  check("maxEvents is how many events a cycle takes", taken.slice(1).join() === "2,1", taken);
};

const timeouts = async ({ reads, api, continuity }: Scene): Promise<void> => {
  const tool = { name: "choose", description: "Asks", inputSchema: { type: "object" }, executionType: "space" };
  const config = { name: "Asker", continuity, tools: [{ ...tool, timeoutMs: 30_000 }] };
  const refused = await refusalOf(api.post("/v1/agents", config));
  reads("it is refused, with what has the effect", refused, "400", "tools.0.timeoutMs", "answer.expiresInMinutes");
};

const modes = async ({ check, reads, api, person, space, agent }: Scene): Promise<void> => {
  const husam = await person("Husam");
  for (const provider of ["feature-hashing", "none"]) {
    const analyst = await agent({ name: `A-${provider}`, embedder: { provider } });
    const alpha = await space(`Alpha, ${provider}`, [husam, analyst], "addressed");
    const talk = [
      "For Oslo I would order the new printer.",
      "Too early.",
      "Fine, we wait until May.",
      "The printer hums.",
    ];
    for (const text of talk) await husam.post(alpha, text);
    const search = async (query: string, mode: string): Promise<string> => {
      const asked = new URLSearchParams({ q: query, mode });
      const answer = await api.get<List<{ excerpt: string }> & { mode: string }>(`${analyst.at}/search?${asked}`);
      return [answer.mode, ...answer.items.map(({ excerpt }) => excerpt)].join("\n");
    };
    await until("the last is found", async () => (await search("hums", "fts")).includes("hums"));
    const question = "What was decided about the new printer for Oslo?";
    for (const query of ["printer", question]) {
      const [auto, fts] = [await search(query, "auto"), await search(query, "fts")];
      check(`${provider}: auto is fts: ${query}`, auto === fts && auto.startsWith("fts\n"), [auto, fts]);
    }
    reads(
      `${provider}: what was decided is found, though it names no printer`,
      await search(question, "auto"),
      "until May",
    );
  }
};

export const canDo: Play[] = [
  { line: "8", says: "threaded messaging in a consciousness", as: living, go: threaded },
  { line: "9", says: "a wait knows whom it can mean", as: both, go: waiting },
  { line: "10", says: "blocks are found and brought back", as: both, go: blocks },
  { line: "11", says: "schemas are shown", as: both, go: schemas },
  { line: "12", says: "errors tell their reason", as: both, go: errors },
  { line: "13", says: "receipts stay", as: both, go: receipts },
  { line: "14", says: "activity, history and events have their settings", as: both, go: settings },
  { line: "15", says: "a space tool has no timeoutMs", as: both, go: timeouts },
  { line: "16", says: "auto never ranks worse than words", as: both, go: modes },
];
